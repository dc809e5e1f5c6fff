#include "nn/map_distance.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "nn/map_distance_launch.h"

namespace tandem {
namespace {

at::Tensor by_operations(const at::Tensor& a, const at::Tensor& b, const at::Tensor& valid,
                         int64_t samples_a_place) {
  const int64_t places = a.size(2);
  const at::Tensor means = (a - b)
                               .abs()
                               .mean(1, false, at::promote_types(a.scalar_type(), at::kFloat))
                               .view({valid.size(0), -1, places})
                               .mean(1);
  const at::Tensor count = at::div(valid + (samples_a_place - 1), samples_a_place, "floor")
                               .clamp(1, places)
                               .unsqueeze(1);
  const at::Tensor beyond = at::arange(places, valid.options()).unsqueeze(0) >= count;
  return means.masked_fill(beyond, 0).sum(1) / count.squeeze(1);
}

#ifdef TANDEM_WITH_CUDA
bool channels_last(const at::Tensor& map) {
  return !map.is_contiguous() && map.transpose(1, 2).is_contiguous();
}
at::Tensor packed(const at::Tensor& map, bool last) {
  return last ? map.transpose(1, 2).contiguous() : map.contiguous();
}

struct MapDistance : torch::autograd::Function<MapDistance> {
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static MapShape shape_of(const at::Tensor& map, const at::Tensor& valid, int64_t samples,
                           bool last) {
    return {.rows = valid.size(0),
            .channels = map.size(last ? 2 : 1),
            .places = map.size(last ? 1 : 2),
            .numbers = map.numel() / valid.size(0),
            .samples_a_place = samples,
            .channels_last = last};
  }
  static at::Tensor forward(Context* context, const at::Tensor& a, const at::Tensor& b,
                            const at::Tensor& valid, int64_t samples) {
    const bool last = channels_last(b);
    const at::Tensor x = packed(a, last), y = packed(b, last);
    const at::Tensor partial = at::empty({valid.size(0), map_parts}, a.options().dtype(at::kFloat));
    map_distance_cuda(x, y, valid, shape_of(x, valid, samples, last), partial);
    context->save_for_backward({x, y, valid});
    context->saved_data["samples"] = samples;
    context->saved_data["last"] = last;
    return partial.sum(1);
  }
  static Tensors backward(Context* context, const Tensors& gradients) {
    const Tensors saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &y = saved[1], &valid = saved[2];
    const bool last = context->saved_data["last"].toBool();
    const MapShape shape = shape_of(x, valid, context->saved_data["samples"].toInt(), last);
    const auto of = [&](const at::Tensor& from, const at::Tensor& other) {
      const at::Tensor out = at::empty_like(from);
      map_distance_backward_cuda(gradients[0].contiguous(), from, other, valid, shape, out);
      return last ? out.transpose(1, 2) : out;
    };
    return {context->needs_input_grad(0) ? of(x, y) : at::Tensor(),
            context->needs_input_grad(1) ? of(y, x) : at::Tensor(), at::Tensor(), at::Tensor()};
  }
};
#endif

}  // namespace

at::Tensor map_distance(const at::Tensor& a, const at::Tensor& b, const at::Tensor& valid,
                        int64_t samples_a_place) {
#ifdef TANDEM_WITH_CUDA
  const bool small = a.numel() / std::max<int64_t>(1, valid.size(0)) < (int64_t{1} << 31);
  if (a.is_cuda() && a.scalar_type() != at::kDouble && small)
    return MapDistance::apply(a, b, valid, samples_a_place);
#endif
  return by_operations(a, b, valid, samples_a_place);
}

}  // namespace tandem
