// Log mel spectrograms, equal to torchaudio's MelSpectrogram (centred frames, reflected at both
// ends) followed by the logarithm. One clip of a batch gives what the clip alone gives. Clips of
// n_fft / 2 samples or less, which torchaudio refuses, are reflected as often as needed (as
// numpy.pad does); a clip of no samples has no frames.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "audio/signal/waves.h"

namespace tandem {

enum class WindowShape { hann, hamming };
enum class MelScale { htk, slaney };

struct MelOptions {
  int sample_rate = 22050;
  int n_fft = 1024;  // a power of two from 16 to 65536
  int hop = 256;
  int window_length = 1024;  // at most n_fft; the window stands in the middle of the frame
  WindowShape window = WindowShape::hann;
  int mels = 80;
  double f_min = 0, f_max = 11025;
  int power = 1;  // 1: magnitudes, 2: powers
  MelScale scale = MelScale::slaney;
  bool area_norm = true;  // filters of equal area ("slaney"), else of equal height
  double clamp = 1e-5;    // ln(max(x, clamp) + add)
  double add = 0;
  double preemphasis = 0;    // before all else; 0: none
  bool standardise = false;  // afterwards, each mel over the clip: mean 0, variance 1 (eps 1e-5)
  bool operator==(const MelOptions&) const = default;
};

MelOptions mel_default();               // 80 mels, Slaney, magnitudes
MelOptions mel_xtts_dvae();             // what the DVAE turns into codes
MelOptions mel_xtts_conditioning();     // the perceiver's, XTTS v2
MelOptions mel_xtts_conditioning_v1();  // without perceiver
MelOptions mel_speaker_encoder();       // 16 kHz, with its pre-emphasis and instance norm

// By the names above without `mel_`: "default", "xtts_dvae", ... None when there is no such name.
std::optional<MelOptions> find_mel(std::string_view name);
std::vector<std::string_view> mel_names();

int64_t mel_frames(int64_t samples, const MelOptions& options);

// [B, mels, frames], zero beyond each row's own frames; `frames` < 0: those of the longest row,
// else rows are cut or filled up to it. `mel_stats` [mels] divides the logarithms.
at::Tensor log_mel(const Waves& waves, const MelOptions& options, int64_t frames = -1,
                   const at::Tensor& mel_stats = {});

// One clip on the CPU, by the calling thread alone: the first `frames` frames to `out` [mels,
// stride]. `frames` is at most mel_frames(); `mel_stats` holds `mels` floats or is null.
void log_mel_clip(const float* in, int64_t samples, const MelOptions& options, int64_t frames,
                  float* out, int64_t stride, const float* mel_stats = nullptr);

// The filters as torchaudio.functional.melscale_fbanks makes them, [n_fft / 2 + 1, mels].
at::Tensor mel_filters(const MelOptions& options);

}  // namespace tandem
