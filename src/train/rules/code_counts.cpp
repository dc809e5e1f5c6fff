#include "train/rules/code_counts.h"

#include <ATen/ATen.h>

namespace tandem {

at::Tensor count_codes(const at::Tensor& codes, int64_t size) {
  const at::Tensor flat = codes.reshape({-1});
  const at::Tensor counted = (flat >= 0).to(at::kFloat);
  // Not bincount, which waits for the device to know its size.
  return at::zeros({size}, counted.options()).scatter_add_(0, flat.clamp_min(0), counted);
}

at::Tensor code_usage(const at::Tensor& counts) { return (counts > 0).to(at::kFloat).mean(); }

at::Tensor code_perplexity(const at::Tensor& counts) {
  const at::Tensor total = counts.sum();
  const at::Tensor shares = counts / total.clamp_min(1);
  const at::Tensor entropy = -at::xlogy(shares, shares).sum();
  return at::where(total > 0, entropy.exp(), at::zeros_like(entropy));
}

}  // namespace tandem
