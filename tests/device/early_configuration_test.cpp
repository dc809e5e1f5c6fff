#include <gtest/gtest.h>
#include <stdlib.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "support/captured.h"
#include "tandem/devices.h"

namespace tandem {
namespace {

const std::string success_of_2_and_3 =
    "🎯 Configuring Multi-GPU Mode...\n"
    "   Data Processing GPU: 2\n"
    "   Model Training GPU: 3\n"
    "   Set visible devices: GPU 2 and GPU 3\n"
    "   Configured memory growth for data GPU\n"
    "   Configured memory growth for model GPU\n"
    "✅ Multi-GPU configuration completed successfully\n";

DeviceRequest simulate(int gpus, std::optional<std::string> data = {},
                       std::optional<std::string> model = {}) {
  DeviceRequest request;
  request.simulate_gpus = gpus;
  request.data_gpu = std::move(data);
  request.model_gpu = std::move(model);
  return request;
}

// Standard error of a request that must fail and print nothing on standard output.
std::string complaint(const DeviceRequest& request) {
  DeviceOutcome outcome{};
  const Captured printed = capture([&] { outcome = configure_devices(request); });
  EXPECT_EQ(outcome, DeviceOutcome::dual_failed);
  EXPECT_EQ(printed.out, "");
  EXPECT_FALSE(DeviceRegistry::get().configured());
  return printed.err;
}

TEST(EarlyConfiguration, PrintsTheContractsBlock) {
  const Captured printed =
      capture([] { EXPECT_EQ(configure_devices(simulate(4, "2", "3")), DeviceOutcome::dual); });
  EXPECT_EQ(printed.out, success_of_2_and_3);
  EXPECT_EQ(printed.err, "");
}

TEST(EarlyConfiguration, TakesTwoIndices) {
  setenv("TANDEM_SIMULATE_GPUS", "4", 1);
  const Captured printed = capture([] { EXPECT_TRUE(early_gpu_configuration(2, 3)); });
  EXPECT_EQ(printed.out, success_of_2_and_3);
}

TEST(EarlyConfiguration, WithoutIndicesIsNotDual) {
  setenv("TANDEM_SIMULATE_GPUS", "2", 1);
  EXPECT_FALSE(early_gpu_configuration());
  EXPECT_EQ(DeviceRegistry::get().gpus().size(), 2u);
}

TEST(EarlyConfiguration, RemapsDataToZeroAndModelToOneAndHidesTheRest) {
  configure_devices(simulate(4, "3", "1"));
  const auto& gpus = DeviceRegistry::get().gpus();
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0]->name(), "/GPU:0");
  EXPECT_EQ(gpus[0]->original_index(), 3);
  EXPECT_EQ(gpus[1]->name(), "/GPU:1");
  EXPECT_EQ(gpus[1]->original_index(), 1);
  EXPECT_EQ(error_of([] { DeviceRegistry::get().find("/GPU:2"); }).kind(), ErrorKind::device);
}

TEST(EarlyConfiguration, OneDataGpuFeedsAListOfModelGpus) {
  const Captured printed = capture([] { configure_devices(simulate(4, "1", "3,0")); });
  EXPECT_NE(printed.out.find(
                "   Model Training GPU: 3, 0\n   Set visible devices: GPU 1 and GPU 3, GPU 0\n"),
            std::string::npos);
  EXPECT_EQ(setup_gpu_strategy(false).replicas, (std::vector<std::string>{"/GPU:1", "/GPU:2"}));
}

TEST(EarlyConfiguration, MultiGpuWithOneModelGpuTakesEveryOther) {
  DeviceRequest request = simulate(4, "1", "2");
  request.multi_gpu = true;
  configure_devices(request);
  std::vector<int> originals;
  for (const auto& gpu : DeviceRegistry::get().gpus()) originals.push_back(gpu->original_index());
  EXPECT_EQ(originals, (std::vector<int>{1, 2, 0, 3}));
}

TEST(EarlyConfiguration, CountsAmongTheVisibleGpus) {
  DeviceRequest request = simulate(4, "1", "0");
  request.visible_gpus = "2,3";
  configure_devices(request);
  EXPECT_EQ(DeviceRegistry::get().probe().gpus[0].uuid, "GPU-simulated-3");
  EXPECT_EQ(DeviceRegistry::get().probe().gpus[1].uuid, "GPU-simulated-2");
}

TEST(EarlyConfiguration, RefusesTooFewGpus) {
  for (int found : {0, 1}) {
    EXPECT_EQ(complaint(simulate(found, "0", "1")), "❌ Multi-GPU requires at least 2 GPUs, found " +
                                                        std::to_string(found) +
                                                        "\n   Falling back to single-GPU mode\n");
  }
}

TEST(EarlyConfiguration, RefusesBadIndices) {
  EXPECT_EQ(complaint(simulate(2, "5", "1")), "❌ Invalid data_gpu=5, must be 0-1\n");
  EXPECT_EQ(complaint(simulate(2, "0", "2")), "❌ Invalid model_gpu=2, must be 0-1\n");
  EXPECT_EQ(complaint(simulate(2, "-1", "1")), "❌ Invalid data_gpu=-1, must be 0-1\n");
  EXPECT_EQ(complaint(simulate(2, "zero", "1")), "❌ Invalid data_gpu=zero, must be 0-1\n");
  EXPECT_EQ(complaint(simulate(2, "", "1")), "❌ Invalid data_gpu=, must be 0-1\n");
  EXPECT_EQ(complaint(simulate(2, "0", "1.5")), "❌ Invalid model_gpu=1.5, must be 0-1\n");
  EXPECT_EQ(complaint(simulate(2, "0", "99999999999999999999")),
            "❌ Invalid model_gpu=99999999999999999999, must be 0-1\n");
  EXPECT_EQ(complaint(simulate(4, "0", "1,7")), "❌ Invalid model_gpu=1,7, must be 0-3\n");
  EXPECT_EQ(complaint(simulate(4, "0", "1,1")), "❌ Invalid model_gpu=1,1, GPU 1 is named twice\n");
}

TEST(EarlyConfiguration, RefusesEqualIndices) {
  EXPECT_EQ(complaint(simulate(2, "1", "1")), "❌ data_gpu and model_gpu must be different\n");
  EXPECT_EQ(complaint(simulate(4, "1", "0,1")), "❌ data_gpu and model_gpu must be different\n");
}

TEST(EarlyConfiguration, RefusesHalfARequest) {
  EXPECT_EQ(complaint(simulate(2, "0", {})),
            "❌ --model-gpu is missing: --data-gpu was given, and Multi-GPU mode needs both\n");
  EXPECT_EQ(complaint(simulate(2, {}, "0")),
            "❌ --data-gpu is missing: --model-gpu was given, and Multi-GPU mode needs both\n");
}

TEST(EarlyConfiguration, RefusesToComeTooLate) {
  configure_devices(simulate(2));
  { DeviceScope used(DeviceRegistry::get().find("/GPU:1")); }
  DeviceOutcome outcome{};
  const Captured printed = capture([&] { outcome = configure_devices(simulate(2, "0", "1")); });
  EXPECT_EQ(outcome, DeviceOutcome::dual_failed);
  EXPECT_EQ(printed.out, "");
  EXPECT_EQ(
      printed.err,
      "❌ Multi-GPU setup failed: Physical devices cannot be modified after being initialized\n"
      "   They were initialised by work that began on /GPU:1 (simulated GPU).\n"
      "   Call early_gpu_configuration() before any work on a GPU.\n");
  EXPECT_EQ(DeviceRegistry::get().gpus().size(), 2u);
  EXPECT_EQ(error_of([] { configure_devices(simulate(2)); }).kind(), ErrorKind::device);
}

TEST(EarlyConfiguration, MayComeAgainBeforeAnyWork) {
  configure_devices(simulate(4));
  capture([] { EXPECT_EQ(configure_devices(simulate(4, "2", "3")), DeviceOutcome::dual); });
  EXPECT_EQ(DeviceRegistry::get().gpus().size(), 2u);
}

TEST(EarlyConfiguration, RefusesContradictions) {
  DeviceRequest both = simulate(2);
  both.split_gpu = 2;
  EXPECT_STREQ(error_of([&] { configure_devices(both); }).what(),
               "--simulate-gpus and --split-gpu exclude each other");
  EXPECT_STREQ(error_of([] { configure_devices(simulate(-1)); }).what(),
               "--simulate-gpus is -1; expected 0 to 64");

  DeviceRequest limit = simulate(2);
  limit.model_gpu_memory = 512;
  EXPECT_STREQ(error_of([&] { configure_devices(limit); }).what(),
               "a GPU memory limit was given without memory isolation");
  limit.memory_isolation = true;
  limit.data_gpu_memory = 512;
  EXPECT_STREQ(error_of([&] { configure_devices(limit); }).what(),
               "--data-gpu-memory limits a data GPU, but none was asked for");
}

TEST(EarlyConfiguration, ALimitIsNotAboveWhatADeviceHas) {
  DeviceRequest limit = simulate(1);
  limit.memory_isolation = true;
  limit.model_gpu_memory = 1'000'000;
  const Captured said = capture([&] { configure_devices(limit); });
  EXPECT_NE(said.err.find("a limit of 1000000 MB is more than GPU 0 has: 8192 MB are the limit"),
            std::string::npos)
      << said.err;
  EXPECT_EQ(DeviceRegistry::get().gpus().front()->memory().limit(), uint64_t{8192} << 20);
}

TEST(EarlyConfiguration, SplitNeedsARealGpu) {
  setenv("TANDEM_NVML_LIBRARY", "libno-such-nvml.so", 1);
  setenv("TANDEM_CUDA_LIBRARY", "libno-such-cuda.so", 1);
  DeviceRequest split;
  split.split_gpu = 2;
  EXPECT_STREQ(error_of([&] { configure_devices(split); }).what(),
               "--split-gpu needs one real GPU, and this process sees none");
  split.split_gpu = 1;
  EXPECT_STREQ(error_of([&] { configure_devices(split); }).what(),
               "--split-gpu is 1; expected 2 to 16");
}

#ifdef TANDEM_WITH_CUDA
// With the pretended library the process believes in real GPUs: the visible devices are set for
// CUDA.
class RealConfiguration : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TANDEM_NVML_LIBRARY", TANDEM_FAKE_NVML, 1);
    setenv("TANDEM_FAKE_GPUS", "4", 1);
  }
};

TEST_F(RealConfiguration, SetsCudaVisibleDevicesByUuidInTheOrderOfTheRemap) {
  DeviceRequest request;
  request.data_gpu = "3";
  request.model_gpu = "1";
  capture([&] { EXPECT_EQ(configure_devices(request), DeviceOutcome::dual); });
  EXPECT_STREQ(getenv("CUDA_VISIBLE_DEVICES"), "GPU-00000003-pretend,GPU-00000001-pretend");
  EXPECT_STREQ(getenv("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  EXPECT_EQ(DeviceRegistry::get().gpus()[1]->info().cuda_index, 1);
}

TEST_F(RealConfiguration, ComposesWithCudaVisibleDevices) {
  setenv("CUDA_VISIBLE_DEVICES", "3,2", 1);
  DeviceRequest request;
  request.data_gpu = "1";
  request.model_gpu = "0";
  capture([&] { configure_devices(request); });
  EXPECT_STREQ(getenv("CUDA_VISIBLE_DEVICES"), "GPU-00000002-pretend,GPU-00000003-pretend");
}

TEST_F(RealConfiguration, SplitSharesOneGpu) {
  DeviceRequest request;
  request.split_gpu = 3;
  configure_devices(request);
  const auto& gpus = DeviceRegistry::get().gpus();
  ASSERT_EQ(gpus.size(), 3u);
  for (const auto& gpu : gpus) {
    EXPECT_EQ(gpu->info().cuda_index, 0);
    EXPECT_EQ(gpu->memory().limit(), (24ull << 30) / 3);
  }
  EXPECT_STREQ(getenv("CUDA_VISIBLE_DEVICES"), "GPU-00000000-pretend");
}

TEST_F(RealConfiguration, UsesOneMigInstance) {
  setenv("TANDEM_FAKE_GPUS", "1", 1);
  setenv("TANDEM_FAKE_MIG", "0:3", 1);
  const Captured printed = capture([] { configure_devices({}); });
  EXPECT_EQ(DeviceRegistry::get().gpus().size(), 1u);
  EXPECT_STREQ(getenv("CUDA_VISIBLE_DEVICES"), "MIG-00000000-0-pretend");
  EXPECT_NE(printed.err.find("using MIG-00000000-0-pretend and not the other 2"),
            std::string::npos);
  DeviceRequest several;
  several.visible_gpus = "0,1";
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(error_of([&] { configure_devices(several); }).kind(), ErrorKind::device);
}
#endif

}  // namespace
}  // namespace tandem
