#include "models/xtts/dvae_encoder.h"

#include <fmt/format.h>

#include "checkpoint/safetensors.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

// Takes tensors by name and remembers which were not there.
class Taker {
 public:
  Taker(const SafetensorsFile& file) : file_(file) {}
  bool has(const std::string& name) const { return file_.tensors.count(name) != 0; }
  at::Tensor take(const std::string& name) {
    const auto found = file_.tensors.find(name);
    if (found != file_.tensors.end()) return found->second.to(at::kFloat);
    missing_.push_back("`" + name + "`");
    return at::Tensor();
  }
  DvaeEncoder::Convolution convolution(const std::string& name) {
    return {take(name + ".weight"), take(name + ".bias")};
  }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  const SafetensorsFile& file_;
  std::vector<std::string> missing_;
};

at::Tensor convolve(const DvaeEncoder::Convolution& layer, const at::Tensor& x, int64_t stride) {
  const int64_t padding = (layer.weight.size(2) - 1) / 2;
  return at::conv1d(x, layer.weight, layer.bias, stride, padding);
}

}  // namespace

DvaeEncoder DvaeEncoder::load(const std::string& path) {
  const SafetensorsFile file = read_safetensors(path);
  Taker taker(file);
  DvaeEncoder encoder;
  size_t layer = 0;
  const auto name = [&](const char* rest) { return fmt::format("encoder.{}.{}", layer, rest); };
  for (; layer == 0 || taker.has(name("0.weight")); ++layer)
    encoder.strided.push_back(taker.convolution(name("0")));
  for (; taker.has(name("net.0.weight")); ++layer) {
    encoder.residual.push_back({taker.convolution(name("net.0")), taker.convolution(name("net.2")),
                                taker.convolution(name("net.4"))});
  }
  encoder.last = taker.convolution(fmt::format("encoder.{}", layer));
  encoder.codebook = taker.take("codebook.embed");
  if (taker.has("mel_stats")) encoder.mel_stats = taker.take("mel_stats");
  if (!taker.missing().empty()) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` holds no DVAE: {} missing", path, join(taker.missing(), ", ")));
  }
  const bool fits = encoder.codebook.dim() == 2 && encoder.last.weight.dim() == 3 &&
                    encoder.codebook.size(0) == encoder.last.weight.size(0);
  if (!fits) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}`: the codebook does not fit the encoder's width", path));
  }
  return encoder;
}

int64_t DvaeEncoder::codes_of(int64_t frames) const {
  for (size_t i = 0; i < strided.size(); ++i) frames = (frames + 1) / 2;
  return frames;
}

at::Tensor DvaeEncoder::codes(const at::Tensor& log_mels) const {
  at::Tensor x = mel_stats.defined() ? log_mels / mel_stats.view({1, -1, 1}) : log_mels;
  for (const Convolution& layer : strided) x = convolve(layer, x, 2).relu();
  for (const Residual& block : residual) {
    const at::Tensor inner = convolve(block.second, convolve(block.first, x, 1).relu(), 1).relu();
    x = convolve(block.third, inner, 1) + x;
  }
  const at::Tensor vectors = convolve(last, x, 1).transpose(1, 2);  // [B, T, width]
  // |v - c|^2 without |v|^2, which is the same for all codes.
  const at::Tensor distance =
      codebook.pow(2).sum(0, /*keepdim=*/true) - 2 * at::matmul(vectors, codebook);
  return distance.argmin(-1);
}

}  // namespace tandem
