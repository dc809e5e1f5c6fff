#include "models/xtts/dvae_encoder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "models/xtts/mel_stats.h"
#include "nn/channels_last.h"
#include "tandem/error.h"

namespace tandem {

at::Tensor convolve(const DvaeEncoder::Convolution& layer, const at::Tensor& x, int64_t stride) {
  const int64_t padding = (layer.weight.size(2) - 1) / 2;
  return conv_rows(x, layer.weight, layer.bias, {.stride = stride, .padding = padding});
}

at::Tensor pass(const DvaeEncoder::Residual& block, const at::Tensor& x) {
  const at::Tensor inner = convolve(block.second, convolve(block.first, x).relu()).relu();
  return convolve(block.third, inner) + x;
}

DvaeEncoder::Size DvaeEncoder::size_of(const Weights& weights, const std::string& prefix) {
  Size size;
  const auto shape = [&](const std::string& name, size_t dimensions) {
    const std::vector<int64_t> found = weights.shape(prefix + name);
    return found.size() == dimensions ? found : Shape{};
  };
  std::vector<int64_t> widths;
  for (;;) {
    const Shape found = shape(fmt::format("encoder.{}.0.weight", widths.size()), 3);
    if (found.empty()) break;
    if (widths.empty()) size.mels = found[1], size.kernel = found[2];
    widths.push_back(found[0]);
  }
  const auto strided = static_cast<int64_t>(widths.size());
  size.blocks = 0;
  while (weights.has(fmt::format("{}encoder.{}.net.0.weight", prefix, strided + size.blocks)))
    ++size.blocks;
  // Without any, one: its name stands first in the list of what is missing.
  size.widths = strided > 0 ? widths : std::vector<int64_t>{512};
  if (const Shape found = shape("codebook.embed", 2); !found.empty())
    size.vector = found[0], size.codes = found[1];
  return size;
}

DvaeEncoder::Size DvaeEncoder::size_of(const XttsConfig& config) {
  Size size;
  size.mels = config.mel_channels;
  size.widths = {config.dvae_width, 2 * config.dvae_width};
  size.vector = config.dvae_width;
  size.codes = config.gpt.audio_tokens - 2;
  return size;
}

std::string DvaeEncoder::prefix_in(const TensorFile& file) {
  constexpr std::string_view marker = "codebook.embed";
  for (const TensorEntry& entry : file.entries()) {
    if (entry.name.ends_with(marker))
      return entry.name.substr(0, entry.name.size() - marker.size());
  }
  return "";
}

void list_convolution(const std::string& name, DvaeEncoder::Convolution& layer, const Shape& shape,
                      const ListTensor& tensor) {
  tensor(name + ".weight", layer.weight, shape, start_for(shape[1] * shape[2]));
  tensor(name + ".bias", layer.bias, {shape[0]}, {});
}

void list_residual(const std::string& name, DvaeEncoder::Residual& block, int64_t width,
                   const ListTensor& tensor) {
  list_convolution(name + ".net.0", block.first, {width, width, 3}, tensor);
  list_convolution(name + ".net.2", block.second, {width, width, 3}, tensor);
  list_convolution(name + ".net.4", block.third, {width, width, 1}, tensor);
}

void DvaeEncoder::list(const std::string& prefix, const ListTensor& tensor) {
  int64_t place = 0, width = size.mels;
  const auto next = [&] { return fmt::format("{}encoder.{}", prefix, place++); };
  strided.resize(size.widths.size());
  for (size_t i = 0; i < strided.size(); ++i) {
    list_convolution(next() + ".0", strided[i], {size.widths[i], width, size.kernel}, tensor);
    width = size.widths[i];
  }
  residual.resize(static_cast<size_t>(size.blocks));
  for (Residual& block : residual) list_residual(next(), block, width, tensor);
  list_convolution(next(), last, {size.vector, width, 1}, tensor);
  tensor(prefix + "codebook.embed", codebook, {size.vector, size.codes},
         {.deviation = 1, .parameter = false});
}

// Coqui keeps them in a file of their own; without them its codes would be those of other mels.
static at::Tensor stats_beside(const TensorFile& file) {
  const std::filesystem::path folder = file.path().parent_path();
  const std::filesystem::path found = find_mel_stats(folder.empty() ? "." : folder);
  if (!found.empty()) return read_mel_stats(found);
  if (file.format() == "safetensors") return {};  // made without any
  throw Error(ErrorKind::io, fmt::format("`{}` needs the mel statistics it was trained with: there "
                                         "is no mel_stats.pth or mel_norms.pth beside it",
                                         file.path().string()))
      .hint("copy that file of the released model there");
}

DvaeEncoder DvaeEncoder::load(const std::string& path) {
  const auto file = open_tensor_file(path);
  Weights weights(*file, prefix_in(*file));
  DvaeEncoder encoder;
  encoder.size = size_of(weights, "");
  encoder.list("", load_from(weights));
  encoder.mel_stats = weights.take_if_there("mel_stats");
  weights.require_complete("DVAE");
  if (!encoder.mel_stats.defined()) encoder.mel_stats = stats_beside(*file);
  return encoder;
}

int64_t DvaeEncoder::codes_of(int64_t frames) const {
  for (size_t i = 0; i < strided.size(); ++i) frames = (frames + 1) / 2;
  return frames;
}

at::Tensor DvaeEncoder::scale(const at::Tensor& log_mels) const {
  return mel_stats.defined() ? log_mels / mel_stats.view({1, -1, 1}) : log_mels;
}

at::Tensor DvaeEncoder::vectors(const at::Tensor& scaled_mels) const {
  at::Tensor x = scaled_mels;
  for (const Convolution& layer : strided) x = convolve(layer, x, 2).relu();
  for (const Residual& block : residual) x = pass(block, x);
  return convolve(last, x).transpose(1, 2);
}

at::Tensor DvaeEncoder::nearest(const at::Tensor& found) const {
  // |v - c|^2 without |v|^2, which is the same for all codes.
  const at::Tensor distance =
      codebook.pow(2).sum(0, /*keepdim=*/true) - 2 * at::matmul(found, codebook);
  return distance.argmin(-1);
}

at::Tensor DvaeEncoder::codes(const at::Tensor& log_mels) const {
  return nearest(vectors(scale(log_mels)));
}

}  // namespace tandem
