// Sound turned into spectra and log mels with gradients, and how far two sounds are apart in them.
// Rows are [B, samples] float32; distances are [B], each over the places of its row that begin
// before `valid` [B] int64 samples (one place at least). Tables are made once, on one device.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <vector>

#include "audio/signal/mel.h"

namespace tandem {

// What HiFi-GAN's mel loss looks at: 80 mels over the whole band, magnitudes.
MelOptions mel_of_decoder(int sample_rate);

// log_mel() of audio/signal with gradients, for rows that are all of the same length.
class MelLayer {
 public:
  MelLayer(const MelOptions& options, const at::Device& device);
  at::Tensor operator()(const at::Tensor& waves) const;  // [B, S] -> [B, mels, 1 + S / hop]
  int64_t hop() const { return options_.hop; }

 private:
  MelOptions options_;
  at::Tensor window_;   // [window length]
  at::Tensor filters_;  // [bins, mels]
};

// resample() of audio/signal with gradients.
class ResampleLayer {
 public:
  ResampleLayer(int from, int to, const at::Device& device);
  at::Tensor operator()(const at::Tensor& waves) const;

 private:
  int from_, to_;
  int64_t stride_ = 1, before_ = 0;
  at::Tensor kernels_;  // [phases, 1, taps]
};

// |STFT| of frames centred at every hop, reflected at the ends: [B, S] -> [B, frames, bins],
// powers.
at::Tensor power_spectrum(const at::Tensor& waves, const at::Tensor& window, int64_t n_fft,
                          int64_t hop);

// Mean over the first places of [B, places]: those that begin before `valid`, one at least.
at::Tensor mean_of_valid(const at::Tensor& values, const at::Tensor& valid,
                         int64_t samples_a_place);

// Mean absolute difference of log mels [B, mels, frames].
at::Tensor mel_distance(const at::Tensor& a, const at::Tensor& b, const at::Tensor& valid,
                        int64_t hop);
// Mel-cepstral distortion in dB: 13 coefficients without the first, by a cosine transform of the
// log mels (magnitudes), mean over frames. The sounds are aligned already.
at::Tensor cepstral_distortion(const at::Tensor& a, const at::Tensor& b, const at::Tensor& valid,
                               int64_t hop);

// Three resolutions, each the relative distance of magnitudes (spectral convergence) plus the mean
// difference of their logarithms; the mean of the three.
class SpectralDistance {
 public:
  explicit SpectralDistance(const at::Device& device);
  at::Tensor operator()(const at::Tensor& a, const at::Tensor& b, const at::Tensor& valid) const;

 private:
  struct Resolution {
    int64_t n_fft, hop;
    at::Tensor window;
  };
  std::vector<Resolution> resolutions_;
};

}  // namespace tandem
