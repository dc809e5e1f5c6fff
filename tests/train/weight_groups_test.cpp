#include "train/rules/weight_groups.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace tandem {

TEST(WeightGroups, AreCoquis) {
  std::ifstream lines(TANDEM_SOURCE_DIR "/tests/train/fixtures/weight_groups.txt");
  std::string kind, name;
  int seen = 0;
  for (; lines >> kind >> name; ++seen) {
    EXPECT_EQ(decays(name), kind == "decay") << name;
    EXPECT_EQ(decays(name.substr(4)), kind == "decay") << name << " without `gpt.`";
  }
  EXPECT_EQ(seen, 90);
}

TEST(WeightGroups, LetLowRankAdditionsDecay) {
  EXPECT_TRUE(decays("gpt.h.0.attn.c_attn.lora_a"));
  EXPECT_FALSE(decays("bias"));
  EXPECT_TRUE(decays("weight"));
}

}  // namespace tandem
