// ITU-R BS.1770-4 for one channel: what host and device share. Energies are sums of squares of the
// K-weighted samples over hops of 100 ms; a block of 400 ms is four of them, which gives the 75 %
// overlap the recommendation asks for.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define TANDEM_SIGNAL_SHARED __host__ __device__
#else
#define TANDEM_SIGNAL_SHARED
#endif

namespace tandem {

struct Biquad {
  double b0 = 1, b1 = 0, b2 = 0, a1 = 0, a2 = 0;
};

// For the device: how many samples before a hop the filter starts from rest. 100 ms leave e^-23 of
// what the 38 Hz high pass still remembers.
struct KWeighting {
  Biquad shelf, high_pass;
  int64_t hop = 1, warm_up = 1;
};

// Both filters in a row, transposed direct form II.
struct KFilter {
  double s1 = 0, s2 = 0, h1 = 0, h2 = 0;
  TANDEM_SIGNAL_SHARED double operator()(const KWeighting& k, double x) {
    const double y = k.shelf.b0 * x + s1;
    s1 = k.shelf.b1 * x - k.shelf.a1 * y + s2;
    s2 = k.shelf.b2 * x - k.shelf.a2 * y;
    const double z = k.high_pass.b0 * y + h1;
    h1 = k.high_pass.b1 * y - k.high_pass.a1 * z + h2;
    h2 = k.high_pass.b2 * y - k.high_pass.a2 * z;
    return z;
  }
};

TANDEM_SIGNAL_SHARED inline double block_loudness(double mean_square) {
  return -0.691 + 10 * log10(mean_square);
}

// In LUFS; minus infinity when no block is above -70. `energies` are those of all hops, the last
// one may be shorter. A clip without a whole block counts as one block.
TANDEM_SIGNAL_SHARED inline double gated_loudness(const double* energies, int64_t samples,
                                                  int64_t hop) {
  const double nothing = -HUGE_VAL, absolute_gate = -70, relative_gate = -10;
  const int64_t whole_hops = samples / hop;
  if (whole_hops < 4) {
    double sum = 0;
    for (int64_t i = 0; i * hop < samples; ++i) sum += energies[i];
    const double loudness =
        samples > 0 ? block_loudness(sum / static_cast<double>(samples)) : nothing;
    return loudness > absolute_gate ? loudness : nothing;
  }
  double gate = absolute_gate, result = nothing;
  for (int pass = 0; pass < 2; ++pass) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i + 4 <= whole_hops; ++i) {
      const double mean = (energies[i] + energies[i + 1] + energies[i + 2] + energies[i + 3]) /
                          static_cast<double>(4 * hop);
      if (!(block_loudness(mean) > gate)) continue;
      sum += mean;
      ++count;
    }
    if (count == 0) return nothing;
    result = block_loudness(sum / static_cast<double>(count));
    gate = result + relative_gate > absolute_gate ? result + relative_gate : absolute_gate;
  }
  return result;
}

}  // namespace tandem
