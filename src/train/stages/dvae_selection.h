// The end of a DVAE's training from nothing: of the many codes it learned with, those most used
// become the model's. And how a DVAE is judged on some clips.
#pragma once

#include <ATen/core/TensorBody.h>

#include <vector>

#include "models/xtts/dvae.h"

namespace tandem {

// Log mels [mels, frames] of a clip on the CPU, a multiple of 4 frames.
using MelClips = std::vector<at::Tensor>;

struct DvaeJudgement {
  double loss = 0;   // mean square of what the mels (divided by mel_stats) lack
  at::Tensor codes;  // [frames / 4] int64 of all clips, one after another
  int64_t frames = 0;
};
DvaeJudgement judge_dvae(const Dvae& dvae, const MelClips& clips);

struct DvaeSelection {
  int64_t before = 0, after = 0;           // codes
  double counted_share = 0;                // of the vectors of the moving counts: code survives
  double clip_share = 0;                   // the same of the clips'
  double loss_before = 0, loss_after = 0;  // of the clips
  bool judged = false;                     // there were clips
};

// Keeps the `keep` codes with the largest cluster_size, in their order, with their statistics.
DvaeSelection select_codes(Dvae& dvae, int64_t keep, const MelClips& clips);

}  // namespace tandem
