// What can be told of a sound without knowing what it should be: whether it clips, is silent, has
// an offset, how loud it is. On the CPU; may be called from any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace tandem {

struct SignalFacts {
  int64_t not_finite = 0;  // NaN and infinite samples; all else counts them as 0
  double peak = 0;         // largest absolute value of any channel; 1 is full scale
  double true_peak = 0;    // the same between samples, by four times the rate (BS.1770 annex 2)
  double full_scale = 0;   // share of samples within 2^-15 of full scale, or beyond
  double offset = 0;       // mean of the channel whose mean is farthest from 0
  double rms = 0;          // over all channels
  double silence = 0;      // share of windows of 50 ms whose RMS is under -60 dBFS
  double loudness = -std::numeric_limits<double>::infinity();  // LUFS, all channels (BS.1770-4)
};

// Channels of equal length.
SignalFacts measure_signal(const std::vector<std::vector<float>>& channels, int sample_rate);

}  // namespace tandem
