#include "nn/frame_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "nn/frame_norm_launch.h"

namespace tandem {
namespace {

at::Tensor by_operations(const at::Tensor& x, const at::Tensor& lengths, const at::Tensor& weight,
                         const at::Tensor& bias, int64_t groups) {
  const int64_t rows = x.size(0), frames = x.size(1), width = x.size(2);
  const at::Tensor real =
      at::arange(frames, lengths.options()).view({1, frames, 1, 1}) < lengths.view({rows, 1, 1, 1});
  const at::Tensor mask = real.to(at::kFloat);
  const at::Tensor grouped = x.to(at::kFloat).view({rows, frames, groups, width / groups});
  const at::Tensor number = (lengths * (width / groups)).view({rows, 1, 1, 1});
  const at::Tensor mean = (grouped * mask).sum({1, 3}, true) / number;
  const at::Tensor centred = (grouped - mean) * mask;
  const at::Tensor variance = centred.square().sum({1, 3}, true) / number;
  const at::Tensor normed = (centred * at::rsqrt(variance + 1e-5)).view({rows, frames, width});
  return ((normed * weight + bias) * mask.view({rows, frames, 1})).to(x.scalar_type());
}

#ifdef TANDEM_WITH_CUDA
struct FrameNorm : torch::autograd::Function<FrameNorm> {
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& given, const at::Tensor& lengths,
                            const at::Tensor& weight, const at::Tensor& bias, int64_t groups) {
    const at::Tensor x = given.contiguous();
    at::Tensor out = at::empty_like(x);
    at::Tensor statistics = at::empty({x.size(0), groups, 2}, x.options().dtype(at::kFloat));
    frame_norm_forward_cuda(x, lengths, weight, bias, out, statistics);
    context->save_for_backward({x, lengths, weight, statistics});
    return out;
  }
  static Tensors backward(Context* context, const Tensors& gradients) {
    const Tensors saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    at::Tensor x_gradient = at::empty_like(x);
    at::Tensor scales = at::empty({2, x.size(0), x.size(2)}, x.options().dtype(at::kFloat));
    frame_norm_backward_cuda(gradients[0].to(x.scalar_type()).contiguous(), x, saved[1], saved[2],
                             saved[3], x_gradient, scales);
    const at::Tensor sums = scales.sum(1);
    return {x_gradient, at::Tensor(), sums[0], sums[1], at::Tensor()};
  }
};
#endif

}  // namespace

at::Tensor frame_norm(const at::Tensor& x, const at::Tensor& lengths, const at::Tensor& weight,
                      const at::Tensor& bias, int64_t groups) {
#ifdef TANDEM_WITH_CUDA
  if (x.is_cuda()) return FrameNorm::apply(x, lengths, weight, bias, groups);
#endif
  return by_operations(x, lengths, weight, bias, groups);
}

}  // namespace tandem
