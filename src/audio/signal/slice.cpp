#include "audio/signal/slice.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "audio/signal/ragged.h"
#include "tandem/error.h"
#include "util/counted_random.h"

namespace tandem {

Sliced random_slice(const Waves& waves, int64_t length, uint64_t seed,
                    const std::vector<uint64_t>& ids, uint64_t draw) {
  check_waves(waves, "random_slice");
  if (ids.size() != waves.lengths.size() || length < 0)
    throw Error(ErrorKind::internal, fmt::format("random_slice was given {} ids for {} rows and a "
                                                 "length of {}",
                                                 ids.size(), waves.lengths.size(), length));
  Sliced sliced;
  std::vector<int64_t> lengths;
  for (size_t row = 0; row < ids.size(); ++row) {
    const int64_t spare = std::max<int64_t>(0, waves.lengths[row] - length);
    sliced.starts.push_back(static_cast<int64_t>(
        counted_below(static_cast<uint64_t>(spare) + 1, seed, "slice", ids[row], draw)));
    lengths.push_back(std::min(length, waves.lengths[row]));
  }
  sliced.waves = cut(waves, sliced.starts, std::move(lengths), length);
  return sliced;
}

}  // namespace tandem
