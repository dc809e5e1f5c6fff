#include "data/corpus/corpus_split.h"

#include <algorithm>

#include "util/counted_random.h"

namespace tandem {

std::vector<int64_t> rows_of_side(const ClipIndex& index, const std::vector<int64_t>& rows,
                                  Side side, double validation_share) {
  if (side == Side::all) return rows;
  std::vector<uint64_t> draws;
  for (const int64_t row : rows)
    draws.push_back(counted_draw(0, "side", hash_text(index[row].id), 0));
  std::vector<bool> validates(rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    validates[i] = static_cast<double>(draws[i] >> 11) < validation_share * 0x1p53;
  if (rows.size() < 2) {
    validates.assign(rows.size(), false);
  } else if (validation_share > 0) {
    const auto [least, most] = std::minmax_element(draws.begin(), draws.end());
    validates[static_cast<size_t>(least - draws.begin())] = true;
    validates[static_cast<size_t>(most - draws.begin())] = false;
  }
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < rows.size(); ++i)
    if (validates[i] == (side == Side::validation)) chosen.push_back(rows[i]);
  return chosen;
}

}  // namespace tandem
