#include "data/feed/batch_rows.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace tandem {

Batch rows_of(const Batch& batch, int64_t first, int64_t count) {
  Batch part{.index = batch.index, .whole_rows = batch.whole_rows};
  for (const at::Tensor& field : batch.fields) part.fields.push_back(field.narrow(0, first, count));
  part.rows = std::clamp<int64_t>(batch.rows - first, 0, count);
  const auto take = [&](const std::vector<int64_t>& all, std::vector<int64_t>& into) {
    for (int64_t row = first; row < first + part.rows; ++row)
      if (static_cast<size_t>(row) < all.size()) into.push_back(all[static_cast<size_t>(row)]);
  };
  take(batch.clips, part.clips);
  take(batch.sizes, part.sizes);
  return part;
}

}  // namespace tandem
