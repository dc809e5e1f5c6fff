#include "models/musicgen/music_parameters.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tandem/error.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

constexpr int64_t block_length = 1'048'583;  // a prime

int64_t elements_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

}  // namespace

ListTensor load_as_configured(Weights& weights) {
  return [&weights](const std::string& name, at::Tensor& tensor, const Shape& shape,
                    const TensorStart&) {
    constexpr std::string_view ending = ".weight";
    tensor = name.ends_with(ending)
                 ? weights.take_folded(name.substr(0, name.size() - ending.size()))
                 : weights.take(name);
    if (!tensor.defined() || tensor.sizes() == at::IntArrayRef(shape)) return;
    throw Error(
        ErrorKind::corrupt,
        fmt::format("`{}`: `{}` has the shape [{}]; config.json asks for [{}]", weights.source(),
                    name, fmt::join(tensor.sizes(), ", "), fmt::join(shape, ", ")));
  };
}

ListTensor draw_repeating(uint64_t seed) {
  // Made with the first tensor that needs it; stays on the device.
  return [seed, block = at::Tensor()](const std::string& name, at::Tensor& tensor,
                                      const Shape& shape, const TensorStart& start) mutable {
    const at::NoGradGuard no_grad;
    const int64_t count = elements_of(shape);
    if (count <= block_length || start.deviation == 0) {
      tensor = make_parameter(seed, name, shape, start.deviation, start.mean);
      tensor.requires_grad_(false);
      return;
    }
    if (!block.defined())
      block = make_parameter(seed, "block", {block_length}, 1.0).requires_grad_(false);
    const auto first = static_cast<int64_t>(
        counted_below(block_length, seed, "place in block", hash_text(name), 0));
    tensor = at::empty(shape, block.options());
    const at::Tensor flat = tensor.view({-1});
    for (int64_t done = 0; done < count;) {
      const int64_t from = (first + done) % block_length;
      const int64_t some = std::min(block_length - from, count - done);
      flat.narrow(0, done, some).copy_(block.narrow(0, from, some));
      done += some;
    }
    tensor.mul_(start.deviation).add_(start.mean);
  };
}

}  // namespace tandem
