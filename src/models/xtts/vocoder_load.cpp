#include <fmt/format.h>

#include <algorithm>

#include "models/xtts/vocoder.h"
#include "tandem/error.h"

namespace tandem {
namespace {

// Sizes as the shapes tell them; where a tensor is missing, those of XTTS v2, so that its name gets
// into the list of what is missing.
Vocoder::Size read_size(const Weights& weights, const std::string& prefix, Vocoder::Size size) {
  const auto shape = [&](const std::string& name) {
    const Shape found = weight_shape(weights, prefix + name);
    return found.size() == 3 ? found : Shape{};
  };
  if (const Shape pre = shape("conv_pre"); !pre.empty())
    size.width = pre[0], size.latents = pre[1], size.pre_kernel = pre[2];
  if (const Shape speaker = shape("cond_layer"); !speaker.empty()) size.speaker = speaker[1];
  if (const Shape post = shape("conv_post"); !post.empty()) size.post_kernel = post[2];
  Vocoder::Size read = size;
  read.widths.clear();
  read.up_kernels.clear();
  for (;;) {
    const Shape up = shape(fmt::format("ups.{}", read.widths.size()));
    if (up.empty()) break;
    read.widths.push_back(up[1]);
    read.up_kernels.push_back(up[2]);
  }
  if (read.widths.empty()) return size;
  size_t blocks = 0;
  while (!shape(fmt::format("resblocks.{}.convs1.0", blocks)).empty()) ++blocks;
  const size_t kinds = blocks / read.widths.size();
  if (kinds == 0) return read;
  read.residual_kernels.clear();
  for (size_t i = 0; i < kinds; ++i)
    read.residual_kernels.push_back(shape(fmt::format("resblocks.{}.convs1.0", i))[2]);
  return read;
}

void check(const Vocoder::Size& size, const std::string& source) {
  const auto odd = [](int64_t kernel) { return kernel % 2 == 1; };
  const bool centred = odd(size.pre_kernel) && odd(size.post_kernel) &&
                       std::all_of(size.residual_kernels.begin(), size.residual_kernels.end(), odd);
  // Kernels of twice the rate, and an even rate: each frame becomes exactly `rate` frames.
  const bool whole = std::all_of(size.up_kernels.begin(), size.up_kernels.end(),
                                 [](int64_t kernel) { return kernel >= 4 && kernel % 4 == 0; });
  if (centred && whole) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("`{}`: the vocoder's kernels are none of a HiFi-GAN; expected odd ones, "
                          "and multiples of 4 in `ups`",
                          source));
}

}  // namespace

Vocoder Vocoder::load(Weights& weights, const std::string& prefix, const XttsConfig& config) {
  Vocoder vocoder;
  vocoder.size = read_size(weights, prefix, size_of(config));
  check(vocoder.size, weights.source());
  vocoder.list(prefix, load_from(weights));
  vocoder.frame_rate_ratio = static_cast<double>(config.output_rate) / config.input_rate;
  vocoder.frames_a_code = std::max<int64_t>(1, config.code_stride / vocoder.samples_a_frame());
  return vocoder;
}

}  // namespace tandem
