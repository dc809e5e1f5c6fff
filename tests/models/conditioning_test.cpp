#include "models/xtts/conditioning.h"

#include <gtest/gtest.h>

#include "models/xtts_narrow.h"
#include "nn/tensors.h"
#include "util/scratch.h"

namespace tandem::tests {

// Widths with 8, 8, 16 and 8 groups.
TEST(Conditioning, GivesCoquisLatentsAtAnyWidth) {
  const at::NoGradGuard no_grad;
  auto expected = xtts_fixture("conditioning");
  for (const auto& [width, heads] :
       {std::pair{40, 5}, std::pair{280, 5}, std::pair{64, 4}, std::pair{16, 2}}) {
    const std::string of = "." + std::to_string(width);
    const Conditioning conditioning = narrow_conditioning(width, heads);
    const at::Tensor found = conditioning(values("mels" + of, {2, 80, 23}, 2, -1));
    ASSERT_EQ(found.sizes(), (at::IntArrayRef{2, 32, width}));
    EXPECT_LT(largest_difference(found.slice(1, 0, 32, 8), expected.at("latents" + of)), 3e-4)
        << width;
  }
}

TEST(Conditioning, GivesAPaddedRowWhatItGivesItAlone) {
  const Conditioning conditioning = narrow_conditioning(40, 2);
  const at::Tensor mels = values("padded", {2, 80, 23}, 2, -1);
  const at::Tensor lengths = at::tensor({14, 23}, at::kLong);
  const at::Tensor both = conditioning(mels, lengths);
  const at::Tensor alone = conditioning(mels.narrow(0, 0, 1).narrow(2, 0, 14));
  EXPECT_LT(largest_difference(both.narrow(0, 0, 1), alone), 1e-4);
  EXPECT_LT(largest_difference(both.narrow(0, 1, 1), conditioning(mels.narrow(0, 1, 1))), 1e-4);
  EXPECT_GT(largest_difference(both.narrow(0, 0, 1), conditioning(mels.narrow(0, 0, 1))), 1e-3);
}

TEST(Conditioning, GroupsDivideTheWidth) {
  EXPECT_EQ(norm_groups(1024), 32);
  EXPECT_EQ(norm_groups(280), 8);
  EXPECT_EQ(norm_groups(100), 4);
  EXPECT_EQ(norm_groups(64), 16);
  EXPECT_EQ(norm_groups(16), 8);
  EXPECT_EQ(norm_groups(7), 1);
}

TEST(Conditioning, RefusesHeadsThatDoNotDivideTheWidth) {
  Weights weights(gpt_weights(narrow_config()), "x.pth");
  const Thrown thrown = thrown_by([&] { Conditioning::load(weights, "gpt.", 3); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(contains(thrown.sentence, "width 40 cannot have 3 heads")) << thrown.sentence;
}

}  // namespace tandem::tests
