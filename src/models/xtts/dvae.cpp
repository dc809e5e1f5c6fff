#include "models/xtts/dvae.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tandem/error.h"

namespace tandem {
namespace {

at::Tensor decode_vectors(const Dvae& dvae, const at::Tensor& vectors) {  // [B, width, T]
  at::Tensor x = convolve(dvae.first, vectors);
  for (const Dvae::Residual& block : dvae.residual) x = pass(block, x);
  for (const Dvae::Convolution& layer : dvae.widening)
    x = convolve(layer, x.repeat_interleave(2, 2)).relu();
  return convolve(dvae.last, x);
}

at::Tensor take_statistic(Weights& weights, const std::string& name, const Shape& shape) {
  at::Tensor found = weights.take_if_there(name);
  if (found.defined() && found.sizes() != at::IntArrayRef(shape) && weights.missing().empty()) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}`: `{}` has the shape [{}]; expected [{}] beside the others",
                            weights.source(), name, fmt::join(found.sizes(), ", "),
                            fmt::join(shape, ", ")));
  }
  return found;
}

}  // namespace

at::Tensor Dvae::decode(const at::Tensor& codes) const {
  const at::Tensor vectors = at::embedding(encoder.codebook.t(), codes).transpose(1, 2);
  const at::Tensor mels = decode_vectors(*this, vectors);
  return encoder.mel_stats.defined() ? mels * encoder.mel_stats.view({1, -1, 1}) : mels;
}

Dvae::Reconstruction Dvae::reconstruct(const at::Tensor& log_mels) const {
  const int64_t whole = int64_t{1} << encoder.strided.size();
  if (log_mels.size(2) % whole != 0) {
    throw Error(ErrorKind::data, fmt::format("{} frames cannot be reconstructed; expected a "
                                             "multiple of {}",
                                             log_mels.size(2), whole));
  }
  const at::Tensor scaled = encoder.scale(log_mels);
  const at::Tensor vectors = encoder.vectors(scaled);  // [B, T, width]
  Reconstruction out;
  out.codes = encoder.nearest(vectors.detach());
  const at::Tensor chosen = at::embedding(encoder.codebook.t(), out.codes);
  out.commitment = (chosen.detach() - vectors).pow(2).mean();
  // Forward the code's vector, backward as if it were the encoder's own.
  const at::Tensor through = vectors + (chosen - vectors).detach();
  out.mels = decode_vectors(*this, through.transpose(1, 2));
  out.loss = at::mse_loss(out.mels, scaled);
  return out;
}

void Dvae::list(const std::string& prefix, const ListTensor& tensor) {
  encoder.list(prefix, tensor);
  const DvaeEncoder::Size& size = encoder.size;
  int64_t place = 0, width = size.widths.back();
  const auto next = [&] { return fmt::format("{}decoder.{}", prefix, place++); };
  list_convolution(next(), first, {width, size.vector, 1}, tensor);
  residual.resize(static_cast<size_t>(size.blocks));
  for (Residual& block : residual) list_residual(next(), block, width, tensor);
  widening.resize(size.widths.size());
  for (size_t i = 0; i < widening.size(); ++i) {
    const int64_t out = size.widths[size.widths.size() - 1 - i];
    list_convolution(next() + ".0.conv", widening[i], {out, width, size.kernel}, tensor);
    width = out;
  }
  list_convolution(next(), last, {size.mels, width, 1}, tensor);
}

Dvae Dvae::load(Weights& weights, const std::string& prefix) {
  Dvae dvae;
  dvae.encoder.size = DvaeEncoder::size_of(weights, prefix);
  dvae.list(prefix, load_from(weights));
  dvae.encoder.mel_stats = weights.take_if_there(prefix + "mel_stats");
  const DvaeEncoder::Size& size = dvae.encoder.size;
  dvae.cluster_size = take_statistic(weights, prefix + "codebook.cluster_size", {size.codes});
  dvae.embed_avg =
      take_statistic(weights, prefix + "codebook.embed_avg", {size.vector, size.codes});
  return dvae;
}

Dvae Dvae::load(const std::string& path) {
  const auto file = open_tensor_file(path);
  Weights weights(*file, DvaeEncoder::prefix_in(*file));
  Dvae dvae = load(weights, "");
  weights.require_complete("DVAE");
  return dvae;
}

Dvae Dvae::make(const XttsConfig& config, uint64_t seed, int64_t codes) {
  Dvae dvae;
  dvae.encoder.size = DvaeEncoder::size_of(config);
  if (codes > 0) dvae.encoder.size.codes = codes;
  dvae.list("dvae.", draw_from(seed));
  return dvae;
}

void Dvae::visit(const std::string& prefix, const VisitParameter& visit) {
  list(prefix, pass_to(visit));
  if (cluster_size.defined()) visit(prefix + "codebook.cluster_size", cluster_size);
  if (embed_avg.defined()) visit(prefix + "codebook.embed_avg", embed_avg);
}

int64_t Dvae::count_parameters(const XttsConfig& config) {
  Dvae dvae;
  dvae.encoder.size = DvaeEncoder::size_of(config);
  int64_t count = 0;
  dvae.list("", count_into(count));
  return count;
}

}  // namespace tandem
