// How many places a pass over packed sequences computes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tandem {

// `places` rounded up, so that passes of similar size share one captured graph: at most a sixteenth
// more, in steps of 64 to 512. What a pass computes beyond its sequences is at most one sequence of
// `longest` places, or nobody computes it and whatever the memory held takes part. Grows with
// `places`, so what is rounded up of the largest batch holds every other.
constexpr int64_t pass_places(int64_t places, int64_t longest) {
  constexpr int64_t least = 64, most = 512;
  const int64_t one_sequence = std::clamp(longest / least * least, least, most);
  const auto share = static_cast<uint64_t>(std::clamp<int64_t>(places / 16, least, most));
  const int64_t step = std::min(static_cast<int64_t>(std::bit_floor(share)), one_sequence);
  return std::max<int64_t>(1, (places + step - 1) / step) * step;
}

}  // namespace tandem
