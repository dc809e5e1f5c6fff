#include "train/rules/loss_scale.h"

#include <ATen/ATen.h>

#include "train/optimizer.h"

namespace tandem {

LossScale::LossScale(const LossScaleOptions& options, at::Device device) : options_(options) {
  scale_ = at::full({}, options.first, at::TensorOptions(at::kFloat).device(device));
  good_ = at::zeros({}, at::TensorOptions(at::kLong).device(device));
}

void LossScale::update(const at::Tensor& norm) {
  const at::NoGradGuard no_grad;
  const at::Tensor finite = at::isfinite(norm.detach());
  const at::Tensor counted = at::where(finite, good_ + 1, at::zeros_like(good_));
  const at::Tensor grows = counted >= options_.growth_steps;
  const at::Tensor grown = at::where(grows, scale_ * options_.growth, scale_);
  const at::Tensor next = at::where(finite, grown, scale_ * options_.backoff);
  scale_.copy_(next.clamp(options_.smallest, options_.largest));
  good_.copy_(counted.masked_fill(grows, 0));
}

void LossScale::load_state(const NamedTensors& saved) {
  copy_by_name(saved, state(), "the loss scale");
}

}  // namespace tandem
