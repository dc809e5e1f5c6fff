// XTTS's HiFi-GAN decoder: GPT latents and a speaker embedding to sound. Weight norm is folded when
// loaded. The frames behind sample i depend on latents within a fixed distance only, so sound can
// be made in windows that equal one pass.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/weights.h"
#include "models/xtts/xtts_config.h"
#include "models/xtts/xtts_parameters.h"
#include "nn/parameters.h"

namespace tandem {

struct Vocoder {
  struct Convolution {
    at::Tensor weight, bias;  // [out, in, k] ([in, out, k] where transposed); bias may be undefined
  };
  struct ResidualBlock {
    std::vector<Convolution> first, second;  // dilations 1, 3, 5; then 1
  };
  struct Stage {
    Convolution up;                       // transposed, rate and kernel below
    Convolution speaker;                  // conds.i, [out, 512, 1]
    std::vector<ResidualBlock> residual;  // kernels 3, 7, 11
    int64_t rate = 2;                     // kernel / 2; padding (kernel - rate) / 2
  };
  struct Size {
    int64_t latents = 1024, speaker = 512;
    int64_t width = 512;                               // behind conv_pre
    std::vector<int64_t> widths = {256, 128, 64, 32};  // behind each stage
    std::vector<int64_t> up_kernels = {16, 16, 4, 4};  // twice the rates
    std::vector<int64_t> residual_kernels = {3, 7, 11};
    int64_t pre_kernel = 7, post_kernel = 7;
  };
  Size size;
  Convolution pre, speaker, post;  // conv_pre, cond_layer, conv_post
  std::vector<Stage> stages;
  std::vector<int64_t> dilations = {1, 3, 5};
  double frame_rate_ratio = 24000.0 / 22050.0;
  int64_t frames_a_code = 4;  // first interpolation

  // Names after `prefix` (`hifigan_decoder.waveform_decoder.`). Sizes come from the shapes.
  static Vocoder load(Weights& weights, const std::string& prefix, const XttsConfig& config);
  static Vocoder make(const XttsConfig& config, uint64_t seed);
  void visit(const std::string& prefix, const VisitParameter& visit);  // folded: .weight, .bias
  void list(const std::string& prefix, const ListTensor& tensor);      // of this `size`
  static Size size_of(const XttsConfig& config);

  int64_t samples_a_frame() const;         // product of the rates: 256
  int64_t frames_of(int64_t codes) const;  // floor(floor(4 N) * 24000 / 22050)
  // How many frames before and behind itself one frame's samples depend on: 13 of XTTS v2.
  int64_t context_frames() const;

  // Both interpolations for frames [first, first + count) of `codes` latents in all (positions are
  // absolute). latents [B, codes, D] -> [B, D, count]. Latents that come later change only frames
  // that stand on the last one.
  at::Tensor frames(const at::Tensor& latents, int64_t first, int64_t count) const;
  // The same for rows of `lengths` [B] latents, from frame `first` [B] of each on: [B, D, count].
  // Frames behind a row's last stand on its last latent. Waits for no device.
  at::Tensor frames_of(const at::Tensor& codes) const;  // [B] int64
  at::Tensor frames(const at::Tensor& latents, const at::Tensor& lengths, const at::Tensor& first,
                    int64_t count) const;
  // The convolutions. frames [B, D, F], speaker [B, 512] -> [B, F * 256]. Products in the type of
  // the weights, sums between the layers in that of the frames where it is wider.
  at::Tensor sound(const at::Tensor& frames, const at::Tensor& speaker) const;
  // Both: latents [B, codes, D] -> [B, frames_of(codes) * 256].
  at::Tensor operator()(const at::Tensor& latents, const at::Tensor& speaker) const;
};

// Latents spoken faster or slower: interpolated to 1 / speed as many. [B, N, D] -> [B, M, D].
at::Tensor at_speed(const at::Tensor& latents, double speed);

}  // namespace tandem
