#include "nn/new_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tandem {

TEST(NewKernels, AreTakenWhereTheyAreAskedForByName) {
  unsetenv("TANDEM_NEW_KERNELS");
  EXPECT_FALSE(new_kernel("map_distance"));
  setenv("TANDEM_NEW_KERNELS", "leaky_cast,map_distance", 1);
  EXPECT_TRUE(new_kernel("map_distance"));
  EXPECT_TRUE(new_kernel("leaky_cast"));
  EXPECT_FALSE(new_kernel("decoder_capture"));
  EXPECT_FALSE(new_kernel("leaky"));
  setenv("TANDEM_NEW_KERNELS", "1", 1);
  EXPECT_TRUE(new_kernel("decoder_capture"));
  setenv("TANDEM_NEW_KERNELS", "0", 1);
  EXPECT_FALSE(new_kernel("decoder_capture"));
}

}  // namespace tandem
