#include "nn/new_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tandem {

TEST(NewKernels, AreTakenWhereTheyAreAskedForByName) {
  unsetenv("TANDEM_NEW_KERNELS");
  EXPECT_FALSE(new_kernel("gelu"));
  setenv("TANDEM_NEW_KERNELS", "conditioning,gelu", 1);
  EXPECT_TRUE(new_kernel("gelu"));
  EXPECT_TRUE(new_kernel("conditioning"));
  EXPECT_FALSE(new_kernel("few_rows"));
  EXPECT_FALSE(new_kernel("gel"));
  setenv("TANDEM_NEW_KERNELS", "1", 1);
  EXPECT_TRUE(new_kernel("few_rows"));
  setenv("TANDEM_NEW_KERNELS", "0", 1);
  EXPECT_FALSE(new_kernel("few_rows"));
}

}  // namespace tandem
