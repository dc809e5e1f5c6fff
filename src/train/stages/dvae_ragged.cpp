#include "train/stages/dvae_ragged.h"

#include <ATen/ATen.h>

#include "nn/channels_last.h"

namespace tandem {
namespace {

DvaeEncoder::Convolution cast(const DvaeEncoder::Convolution& layer, at::ScalarType compute) {
  return {layer.weight.to(compute), layer.bias.to(compute)};
}

at::Tensor pass_masked(const DvaeEncoder::Residual& block, const at::Tensor& x,
                       const at::Tensor& mask, at::ScalarType compute) {
  at::Tensor inner = convolve(cast(block.first, compute), x).relu() * mask;
  inner = convolve(cast(block.second, compute), inner).relu() * mask;
  // The last one is one wide and reads nothing of its neighbours, but adds its bias everywhere.
  return (convolve(cast(block.third, compute), inner) + x) * mask;
}

}  // namespace

DvaeMasks dvae_masks(const Dvae& dvae, const at::Tensor& lengths, int64_t frames,
                     at::ScalarType type) {
  const at::Tensor rows = lengths.view({-1, 1, 1});
  DvaeMasks masks;
  for (size_t i = 0; i <= dvae.encoder.strided.size(); ++i) {
    const int64_t step = int64_t{1} << i;
    const at::Tensor first = at::arange(frames / step, lengths.options()).mul_(step);
    masks.push_back((first.view({1, 1, -1}) < rows).to(type));
  }
  return masks;
}

at::Tensor encode_ragged(const Dvae& dvae, const at::Tensor& scaled_mels, const DvaeMasks& masks,
                         at::ScalarType compute) {
  const DvaeEncoder& encoder = dvae.encoder;
  at::Tensor x = channels_last(scaled_mels.to(compute)) * masks.front();
  for (size_t i = 0; i < encoder.strided.size(); ++i)
    x = convolve(cast(encoder.strided[i], compute), x, 2).relu() * masks[i + 1];
  for (const Dvae::Residual& block : encoder.residual)
    x = pass_masked(block, x, masks.back(), compute);
  x = convolve(cast(encoder.last, compute), x);
  return x.transpose(1, 2).to(encoder.last.weight.scalar_type());
}

at::Tensor decode_ragged(const Dvae& dvae, const at::Tensor& vectors, const DvaeMasks& masks,
                         at::ScalarType compute) {
  at::Tensor x = vectors.transpose(1, 2).to(compute) * masks.back();
  x = convolve(cast(dvae.first, compute), x) * masks.back();
  for (const Dvae::Residual& block : dvae.residual)
    x = pass_masked(block, x, masks.back(), compute);
  for (size_t i = 0; i < dvae.widening.size(); ++i) {
    const at::Tensor& mask = masks[masks.size() - 2 - i];
    // Every frame twice; an expanded view copied once, which a captured step may do.
    const at::Tensor twice = x.transpose(1, 2)
                                 .unsqueeze(2)
                                 .expand({-1, -1, 2, -1})
                                 .reshape({x.size(0), 2 * x.size(2), x.size(1)});
    x = convolve(cast(dvae.widening[i], compute), twice.transpose(1, 2)).relu() * mask;
  }
  return convolve(cast(dvae.last, compute), x).to(dvae.last.weight.scalar_type());
}

}  // namespace tandem
