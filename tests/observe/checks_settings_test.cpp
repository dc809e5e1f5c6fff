#include "observe/checks_settings.h"

#include <gtest/gtest.h>

#include "util/scratch.h"

namespace tandem::tests {
namespace {

Resolved settings_of(const std::vector<std::string>& overrides) {
  return resolve({.overrides = overrides, .use_environment = false});
}

SettingCheck speed_of(const std::vector<std::string>& overrides, const std::string& name,
                      unsigned cores = 4) {
  for (const SettingCheck& one :
       check_speed_settings(settings_of(overrides).config, {.cores = cores}))
    if (one.check.name == name) return one;
  ADD_FAILURE() << "no check " << name;
  return {};
}

// The one line about settings that do not go together.
Check clash_of(const std::vector<std::string>& overrides, const SettingsMachine& machine = {}) {
  const auto all = check_contradictions(settings_of(overrides), machine);
  EXPECT_EQ(all.size(), 1u);
  return all[0].check;
}

}  // namespace

TEST(SettingChecks, TheDefaultsPass) {
  const auto all = check_speed_settings(Config{}, {.cores = 2});
  EXPECT_EQ(all.size(), 7u);
  for (const SettingCheck& one : all) {
    EXPECT_EQ(one.check.verdict, Verdict::pass) << one.check.found;
    EXPECT_FALSE(one.fix);
  }
  EXPECT_EQ(clash_of({}).found, "none contradicts another");
}

TEST(SettingChecks, EverySwitchThatIsOffWarnsWithItsKey) {
  for (const auto& [name, key] : {std::pair{"graph mode", "training.enable_graph_mode"},
                                  {"kernel fusion", "training.enable_kernel_fusion"},
                                  {"native loading", "data.use_native_loading"},
                                  {"prefetch", "data.prefetch_to_gpu"},
                                  {"overlap", "data.optimize_cpu_gpu_overlap"}}) {
    const SettingCheck off = speed_of({std::string(key) + "=false"}, name);
    EXPECT_EQ(off.check.verdict, Verdict::warn) << name;
    EXPECT_EQ(off.check.advice, "set " + std::string(key) + ": true");
    ASSERT_TRUE(off.fix);
    EXPECT_EQ(off.fix->key, key);
    EXPECT_EQ(off.fix->value, Value(true));
  }
}

TEST(SettingChecks, FewerThanEightWorkersOrBatchesWarn) {
  EXPECT_EQ(speed_of({"data.num_workers=8"}, "workers").check.verdict, Verdict::pass);
  const SettingCheck few = speed_of({"data.num_workers=7"}, "workers", 12);
  EXPECT_EQ(few.check.verdict, Verdict::warn);
  EXPECT_EQ(few.check.advice, "set data.num_workers: 12");
  EXPECT_EQ(speed_of({"data.num_workers=7"}, "workers", 64).check.advice,
            "set data.num_workers: 16");
  EXPECT_EQ(speed_of({"prefetch_buffer_size=8"}, "queue").check.verdict, Verdict::pass);
  EXPECT_EQ(speed_of({"prefetch_buffer_size=7"}, "queue").check.verdict, Verdict::warn);
  EXPECT_EQ(speed_of({"enable_eager_debug=true"}, "eager debug").check.verdict, Verdict::warn);
}

TEST(SettingChecks, DevicesThatCannotBeFail) {
  EXPECT_EQ(clash_of({"data_gpu=0"}).verdict, Verdict::fail);
  EXPECT_EQ(clash_of({"data_gpu=0"}).found, "`data.data_gpu` is given and `data.model_gpu` is not");
  EXPECT_EQ(clash_of({"data_gpu=1", "model_gpu=1"}).verdict, Verdict::fail);
  EXPECT_EQ(clash_of({"multi_gpu=true", "visible_gpus=1"}).verdict, Verdict::warn);
  const SettingsMachine machine{.gpus = std::vector<GpuInfo>(4)};
  const Check small = clash_of({"multi_gpu=true", "data.batch_size=3"}, machine);
  EXPECT_EQ(small.verdict, Verdict::fail);
  EXPECT_EQ(small.advice, "set data.batch_size: 4 or more");
}

TEST(SettingChecks, WhatHasNoEffectWarns) {
  EXPECT_TRUE(contains(clash_of({"data_gpu_memory=100"}).found, "they do nothing"));
  EXPECT_TRUE(contains(clash_of({"enable_memory_isolation=true"}).found, "no limit is given"));
  EXPECT_TRUE(contains(clash_of({"pin_memory=false"}).found, "whatever"));
  EXPECT_TRUE(contains(clash_of({"prefetch_to_gpu=false", "enhanced_gpu_prefetch=true"}).found,
                       "has no effect"));
  EXPECT_TRUE(contains(clash_of({"warn_bad_share=0.5"}).found, "stops before it warns"));
  EXPECT_TRUE(contains(clash_of({"enable_eager_debug=true", "enable_graph_mode=true"}).found,
                       "turns off the graph mode"));
  EXPECT_TRUE(contains(clash_of({"max_steps=10", "warmup_steps=10"}).found, "10 of 10 steps"));
  EXPECT_TRUE(contains(clash_of({"lora_rank=8", "stage=dvae"}).found, "does not use"));
  EXPECT_TRUE(contains(clash_of({"stage_steps=1,2,3", "stage=gpt"}).found, "does not use"));
  EXPECT_TRUE(
      contains(clash_of({"early_stop_patience=3", "validation_share=0"}).found, "no validation"));
}

TEST(SettingChecks, WhatTheCardsCannotDoWarns) {
  SettingsMachine machine;
  machine.gpus = {{.index = 0, .memory_total = uint64_t{8} << 30, .compute_capability = "7.5"}};
  EXPECT_TRUE(contains(clash_of({"precision=bf16"}, machine).found, "compute capability 7.5"));
  EXPECT_TRUE(
      contains(clash_of({"enable_memory_isolation=true", "model_gpu_memory=9000"}, machine).found,
               "9000 MB is more than the 8192 MB GPU 0 has"));
  machine.gpus[0].compute_capability = "8.0";
  EXPECT_EQ(clash_of({"precision=bf16"}, machine).verdict, Verdict::pass);
}

}  // namespace tandem::tests
