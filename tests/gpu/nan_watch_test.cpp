// A backward pass on a GPU runs on a thread of LibTorch's own. Needs a GPU.
#include "train/nan_watch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gpu/in_child.h"
#include "tandem/error.h"
#include "train/learner.h"

namespace tandem {

TEST(GpuNanWatch, LooksAtTheBackwardPass) {
  IN_CHILD({
    at::Tensor weight = at::zeros({3}, at::kCUDA).requires_grad_(true);
    const std::vector<Phase> phases = {{.name = "all", .tensors = {{"layer.weight", &weight}}}};
    const NanWatch watch(phases, 2);
    const at::Tensor loss = (at::sqrt(weight) * 0).sum();  // its gradient: 0 / 0
    EXPECT_NO_THROW(watch.check());
    loss.backward();
    std::string found;
    try {
      watch.check();
    } catch (const Error& error) {
      found = error.what();
    }
    EXPECT_EQ(found.find("step 2: the first number that is not one comes out of `aten::"), 0U)
        << found;
  });
}

}  // namespace tandem
