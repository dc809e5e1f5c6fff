#include "train/batches/clip_codes.h"

#include <ATen/ATen.h>

#include "device/device_scope.h"
#include "device/logical_device.h"

namespace tandem {
namespace {

at::Tensor convolve_exactly(const DvaeEncoder::Convolution& layer, const at::Tensor& x,
                            int64_t stride = 1) {
  const int64_t padding = (layer.weight.size(2) - 1) / 2;
  return at::_convolution(x, layer.weight, layer.bias, {stride}, {padding}, {1},
                          /*transposed=*/false, {0}, /*groups=*/1, /*benchmark=*/false,
                          /*deterministic=*/true, /*cudnn_enabled=*/true, /*allow_tf32=*/false);
}

}  // namespace

at::Tensor codes_of_clips(const DvaeEncoder& encoder, const at::Tensor& log_mels,
                          const std::vector<int64_t>& frames) {
  const at::NoTF32Guard full_precision;
  at::Tensor left = at::tensor(frames, at::kLong).to(log_mels.device(), /*non_blocking=*/true);
  at::Tensor within;  // [B, 1, T] float32
  const auto measure = [&](int64_t width) {
    const at::Tensor places = at::arange(width, left.options());
    within = (places.unsqueeze(0) < left.unsqueeze(1)).to(at::kFloat).unsqueeze(1);
  };
  at::Tensor x = encoder.scale(log_mels);
  for (const DvaeEncoder::Convolution& layer : encoder.strided) {
    x = convolve_exactly(layer, x, 2).relu_();
    left = at::floor_divide(left + 1, 2);
    measure(x.size(2));
    x.mul_(within);
  }
  for (const DvaeEncoder::Residual& block : encoder.residual) {
    at::Tensor inner = convolve_exactly(block.first, x).relu_().mul_(within);
    inner = convolve_exactly(block.second, inner).relu_();
    x = (convolve_exactly(block.third, inner) + x).mul_(within);
  }
  return encoder.nearest(convolve_exactly(encoder.last, x).transpose(1, 2));
}

DvaeEncoder encoder_here(const DvaeEncoder& encoder) {
  DvaeEncoder here = encoder;
  const LogicalDevice* device = DeviceScope::current();
  if (!device || device->kind() == DeviceKind::cpu) return here;
  const auto move = [&](at::Tensor& tensor) {
    tensor = tensor.to(device->torch_device(), tensor.scalar_type(), /*non_blocking=*/false,
                       /*copy=*/true);
  };
  here.list("", [&](const std::string&, at::Tensor& tensor, const Shape&, const TensorStart&) {
    move(tensor);
  });
  if (here.mel_stats.defined()) move(here.mel_stats);
  return here;
}

}  // namespace tandem
