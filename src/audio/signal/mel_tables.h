// The tables of a mel front end, made once for each set of options and kept.
#pragma once

#include <memory>
#include <vector>

#include "audio/signal/lanes.h"
#include "audio/signal/mel.h"

namespace tandem {

struct MelTables {
  MelOptions options;
  const Lanes* lanes = nullptr;
  MelPlan plan;  // points into the vectors below

  std::vector<float> window;  // [n_fft], not halved
  std::vector<float> half_window, turn, weights;
  std::vector<std::vector<float>> twiddles;
  std::vector<int32_t> position, offset, first_bin, bin_count;
};

// From any thread. An Error(config) when the options contradict each other.
std::shared_ptr<const MelTables> mel_tables(const MelOptions& options, const Lanes& lanes);

// As log_mel_clip of mel.h, without pre-emphasis and without standardising.
void plain_mel_clip(const MelTables& tables, const float* in, int64_t samples, int64_t frames,
                    float* out, int64_t stride, const float* mel_stats);

}  // namespace tandem
