// Sound of a clip's codes, and codes of a sound to go on from. In stereo the codebooks of left and
// right take turns (even: left), and each side goes through the one-channel codec by itself.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>

#include "models/musicgen/encodec.h"
#include "models/musicgen/musicgen_config.h"

namespace tandem {

// codes [B, K, frames] -> sound [B, channels, samples]
at::Tensor sound_of_codes(const Encodec& codec, const MusicDecoderSize& size,
                          const at::Tensor& codes);
// sound [B, channels, samples] -> codes [B, K, frames]
at::Tensor codes_of_sound(const Encodec& codec, const MusicDecoderSize& size,
                          const at::Tensor& sound);

// A file as [channels, samples] float32 at `rate`: resampled where it has another, one channel
// doubled for stereo, several averaged for mono. Throws AudioError.
at::Tensor read_prompt_sound(const std::string& path, int64_t rate, int64_t channels);

}  // namespace tandem
