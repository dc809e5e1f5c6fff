// Codes of many clips in one pass, each as if it were alone: what a convolution would read beyond a
// clip's end is zero, as it is for the clip alone. (In a batch that is merely filled up, the last
// three or four codes of a clip depend on its company.) Products are in full float32, whatever the
// training's precision: a code is an index, and half a bit less makes some of them others.
#pragma once

#include <ATen/core/TensorBody.h>

#include <vector>

#include "models/xtts/dvae_encoder.h"

namespace tandem {

// `log_mels` [B, mels, F], not yet divided by mel_stats, zero beyond each row's `frames`. Gives
// [B, codes_of(F)] int64; what stands beyond codes_of(frames) of a row means nothing. Queues work
// only.
at::Tensor codes_of_clips(const DvaeEncoder& encoder, const at::Tensor& log_mels,
                          const std::vector<int64_t>& frames);

// The encoder on the device of the open DeviceScope; on the CPU the same tensors.
DvaeEncoder encoder_here(const DvaeEncoder& encoder);

}  // namespace tandem
