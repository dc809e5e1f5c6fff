#include "nn/leaky_cast.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#ifdef TANDEM_WITH_CUDA
#include <ATen/cuda/CUDAContext.h>

#include "nn/leaky_cast_launch.h"
#endif

namespace tandem {
namespace {

#ifdef TANDEM_WITH_CUDA
__nv_bfloat16* halves_of(const at::Tensor& tensor) {
  return static_cast<__nv_bfloat16*>(tensor.data_ptr());
}

// Without gaps, in whatever order of memory, at an address that whole vectors are read from.
at::Tensor aligned(const at::Tensor& tensor) {
  const at::Tensor packed = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  return reinterpret_cast<uintptr_t>(packed.data_ptr()) % 16 == 0 ? packed : packed.clone();
}
at::Tensor in_order_of(const at::Tensor& tensor, const at::Tensor& other) {
  if (tensor.strides() == other.strides()) return aligned(tensor);
  return at::empty_strided(other.sizes(), other.strides(), tensor.options()).copy_(tensor);
}

struct LeakyCast : torch::autograd::Function<LeakyCast> {
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& given, double slope) {
    const at::Tensor x = aligned(given);
    at::Tensor out = at::empty_strided(x.sizes(), x.strides(), x.options().dtype(at::kBFloat16));
    launch_leaky_cast(x.const_data_ptr<float>(), halves_of(out), x.numel(),
                      static_cast<float>(slope), at::cuda::getCurrentCUDAStream());
    context->save_for_backward({out});
    context->saved_data["slope"] = slope;
    return out;
  }
  static Tensors backward(Context* context, const Tensors& gradients) {
    const at::Tensor out = context->get_saved_variables()[0];
    const at::Tensor gradient = in_order_of(gradients[0], out);
    at::Tensor x_gradient =
        at::empty_strided(out.sizes(), out.strides(), out.options().dtype(at::kFloat));
    launch_leaky_cast_backward(halves_of(gradient), halves_of(out), x_gradient.data_ptr<float>(),
                               out.numel(),
                               static_cast<float>(context->saved_data["slope"].toDouble()),
                               at::cuda::getCurrentCUDAStream());
    return {x_gradient, at::Tensor()};
  }
};
#endif

}  // namespace

at::Tensor leaky_cast(const at::Tensor& x, double slope, at::ScalarType type) {
#ifdef TANDEM_WITH_CUDA
  if (x.is_cuda() && x.scalar_type() == at::kFloat && type == at::kBFloat16)
    return LeakyCast::apply(x, slope);
#endif
  return at::leaky_relu(x, slope).to(type);
}

}  // namespace tandem
