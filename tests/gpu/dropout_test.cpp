// The masks a GPU draws are those of the CPU.
#include "nn/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gpu/in_child.h"

namespace tandem {

TEST(GpuCountedDropout, DrawsTheMasksOfTheCpu) {
  IN_CHILD({
    const at::Tensor like = at::ones({4, 5, 72}), step = at::full({}, 3, at::kLong);
    for (const at::Tensor& rows : {at::Tensor(), at::tensor({11, 12, 13, 14}, at::kLong)}) {
      const CountedDropout here{.share = 0.3, .seed = 7, .step = step, .rows = rows};
      CountedDropout there = here;
      there.step = step.to(at::kCUDA);
      if (rows.defined()) there.rows = rows.to(at::kCUDA);
      const at::Tensor expected = dropout_factors(here, like, 2);
      const at::Tensor found = dropout_factors(there, like.to(at::kCUDA), 2).cpu();
      EXPECT_TRUE(at::equal(found, expected)) << rows.defined();
    }
  });
}

}  // namespace tandem
