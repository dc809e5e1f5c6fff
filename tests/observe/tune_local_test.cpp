// Presets of this machine among the shipped ones.
#include <gtest/gtest.h>

#include <cstdlib>

#include "config/groups.h"
#include "config/resolve.h"
#include "support/temporary_folder.h"
#include "tandem/error.h"

namespace tandem {
namespace {

class LocalPresets : public testing::Test {
 protected:
  LocalPresets() {
    setenv("TANDEM_CONFIG_DIR", folder.path().c_str(), 1);
    folder.write("preset/h200.yaml", "data:\n  batch_size: 64\n");
  }
  static Resolved automatic(const std::string& gpu) {
    return resolve({.preset = "auto", .use_environment = false, .gpu_name = gpu});
  }
  TestFolder folder;
};

}  // namespace

TEST_F(LocalPresets, AutoTakesWhatWasMeasuredHereBeforeWhatWasGuessed) {
  EXPECT_EQ(automatic("NVIDIA H200").config.data.batch_size, 64);
  folder.write("local/h200.yaml", "data:\n  batch_size: 200\n");
  const Resolved resolved = automatic("NVIDIA H200");
  EXPECT_EQ(resolved.config.data.batch_size, 200);
  EXPECT_EQ(resolved.sources.at("data.batch_size").where, "preset local/h200");
}

TEST_F(LocalPresets, CardsWithoutAShippedPresetTheCpuAndSimulatedOnesHaveThemToo) {
  folder.write("local/tesla-t4.yaml", "data:\n  batch_size: 5\n");
  folder.write("local/simulated-gpu.yaml", "data:\n  batch_size: 6\n");
  folder.write("local/cpu.yaml", "data:\n  batch_size: 7\n");
  EXPECT_EQ(automatic("Tesla T4").config.data.batch_size, 5);
  EXPECT_EQ(automatic("simulated GPU").config.data.batch_size, 6);
  EXPECT_EQ(automatic("").config.data.batch_size, 7);
}

TEST_F(LocalPresets, AreLoadedByNameAndListed) {
  folder.write("local/h200.yaml", "data:\n  batch_size: 200\n");
  const Resolved resolved = resolve({.preset = "local/h200", .use_environment = false});
  EXPECT_EQ(resolved.config.data.batch_size, 200);
  EXPECT_EQ(group_choices("preset"), (std::vector<std::string>{"h200", "local/h200"}));
  try {
    resolve({.preset = "local/h20", .use_environment = false});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "there is no `preset` called `local/h20` (--preset). Did you mean `local/h200`? "
                 "There are: h200, local/h200");
  }
}

TEST_F(LocalPresets, ANameIsNeverAPathElsewhere) {
  folder.write("secret.yaml", "data:\n  batch_size: 9\n");
  EXPECT_THROW(resolve({.preset = "local/../secret", .use_environment = false}), Error);
}

TEST_F(LocalPresets, AreCalledLikeTheCard) {
  EXPECT_EQ(local_preset_for_gpu("NVIDIA GeForce RTX 4090"), "local/geforce-rtx-4090");
  EXPECT_EQ(local_preset_for_gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb"),
            "local/a100-sxm4-40gb-mig-1g-5gb");
  EXPECT_EQ(local_preset_for_gpu("NVIDIA H200, part 1 of 2"), "local/h200-part-1-of-2");
  EXPECT_EQ(local_preset_for_gpu("../../etc"), "local/etc");
  EXPECT_EQ(local_preset_for_gpu(""), "local/cpu");
}

}  // namespace tandem
