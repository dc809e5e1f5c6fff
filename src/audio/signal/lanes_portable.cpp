// Four lanes: what every x86-64 has, and what the compiler makes of it elsewhere.
#include <cmath>

#include "audio/signal/lanes.h"

namespace tandem {
namespace {
constexpr int lane_count = 4, largest_radix = 4;
typedef float FourFloats __attribute__((vector_size(16)));
inline FourFloats square_root(FourFloats x) {
  for (int i = 0; i < 4; ++i) x[i] = std::sqrt(x[i]);
  return x;
}
}  // namespace
}  // namespace tandem
#include "audio/signal/lanes_body.h"

namespace tandem {
extern const Lanes portable_lanes = this_lanes("portable");
}
