// The kernels against tensor operations on the CPU, values and gradients.
#include "nn/map_distance.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "gpu/in_child.h"
#include "nn/parameters.h"

namespace tandem {

TEST(GpuMapDistance, GivesWhatTheCpuGives) {
  IN_CHILD({
    const at::Tensor valid = at::tensor({int64_t{900}, int64_t{331}, int64_t{0}});
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const bool last : {false, true}) {
        for (const auto& [columns, channels, places, samples] :
             {std::tuple<int64_t, int64_t, int64_t, int64_t>{1, 128, 900, 1},
              {3, 40, 101, 9},
              {1, 1, 57, 16}}) {
          const auto drawn = [&](const char* name) {
            const at::Tensor map =
                make_parameter(5, name, {3 * columns, channels, places}, 1.0).detach().to(type);
            return last ? map.transpose(1, 2).contiguous().transpose(1, 2) : map;
          };
          const at::Tensor a = drawn("a"), b = drawn("b");
          std::vector<at::Tensor> found[2];
          for (const bool gpu : {false, true}) {
            const auto leaf = [&](const at::Tensor& t) {
              return (gpu ? t.to(at::kCUDA) : t.to(at::kFloat)).requires_grad_(true);
            };
            const at::Tensor x = leaf(a), y = leaf(b);
            const at::Tensor out = map_distance(x, y, gpu ? valid.to(at::kCUDA) : valid, samples);
            const at::Tensor flow = at::tensor({1.0f, -2.0f, 3.0f}).to(out.device());
            const auto gradients = torch::autograd::grad({out}, {x, y}, {flow});
            found[gpu] = {out.detach(), gradients[0], gradients[1]};
          }
          for (size_t i = 0; i < 3; ++i) {
            const at::Tensor ours = found[1][i].cpu().to(at::kFloat), theirs = found[0][i];
            EXPECT_LT((ours - theirs).abs().max().item<double>(),
                      (type == at::kFloat ? 1e-5 : 5e-3) * theirs.abs().max().item<double>())
                << i << (last ? " channels last" : "") << places;
          }
        }
      }
    }
  });
}

}  // namespace tandem
