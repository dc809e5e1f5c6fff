#include "device/probe.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "device/visible.h"
#include "support/captured.h"

namespace tandem {
namespace {

GpuProbe fake_nvml(int gpus) {
  setenv("TANDEM_FAKE_GPUS", std::to_string(gpus).c_str(), 1);
  return probe_with_nvml(TANDEM_FAKE_NVML).value();
}

std::vector<std::string> uuids(const std::vector<GpuInfo>& gpus) {
  std::vector<std::string> out;
  for (const GpuInfo& gpu : gpus) out.push_back(gpu.uuid);
  return out;
}

using Uuids = std::vector<std::string>;

TEST(Probe, ReadsEveryGpuThroughNvml) {
  const GpuProbe probe = fake_nvml(3);
  EXPECT_EQ(probe.source, "nvml");
  EXPECT_EQ(probe.driver_version, "580.99.01");
  EXPECT_EQ(probe.cuda_version, "13.0");
  ASSERT_EQ(probe.gpus.size(), 3u);
  const GpuInfo& gpu = probe.gpus[2];
  EXPECT_EQ(gpu.index, 2);
  EXPECT_EQ(gpu.name, "NVIDIA Pretend 2");
  EXPECT_EQ(gpu.uuid, "GPU-00000002-pretend");
  EXPECT_EQ(gpu.memory_total, 24ull << 30);
  EXPECT_EQ(gpu.memory_used, 1ull << 30);
  EXPECT_EQ(gpu.utilisation, 12);
  EXPECT_EQ(gpu.temperature, 41);
  EXPECT_DOUBLE_EQ(gpu.power.value(), 123.4);
  EXPECT_EQ(gpu.compute_capability, "9.0");
}

TEST(Probe, KnowsPeers) {
  const GpuProbe probe = fake_nvml(4);
  EXPECT_EQ(probe.gpus[0].peers, std::vector<int>{1});
  EXPECT_EQ(probe.gpus[3].peers, std::vector<int>{2});
  EXPECT_EQ(probe.gpus[3].nvlinks, std::vector<int>{2});
}

TEST(Probe, ListsMigInstancesInPlaceOfTheirGpu) {
  setenv("TANDEM_FAKE_MIG", "1:2", 1);
  const GpuProbe probe = fake_nvml(3);
  EXPECT_EQ(uuids(probe.gpus), (Uuids{"GPU-00000000-pretend", "MIG-00000001-0-pretend",
                                      "MIG-00000001-1-pretend", "GPU-00000002-pretend"}));
  EXPECT_EQ(probe.gpus[2].index, 2);
  EXPECT_EQ(probe.gpus[1].mig_parent, "GPU-00000001-pretend");
  EXPECT_FALSE(probe.gpus[0].mig_parent);
}

TEST(Probe, AsksTheDriverWhenNvmlIsBroken) {
  setenv("TANDEM_NVML_LIBRARY", TANDEM_FAKE_NVML, 1);
  setenv("TANDEM_CUDA_LIBRARY", TANDEM_FAKE_CUDA, 1);
  setenv("TANDEM_FAKE_NVML_BROKEN", "1", 1);
  setenv("TANDEM_FAKE_GPUS", "2", 1);
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);  // must not hide anything from the probe
  const GpuProbe probe = probe_gpus();
  EXPECT_EQ(probe.source, "driver");
  ASSERT_EQ(probe.gpus.size(), 2u);
  EXPECT_EQ(probe.gpus[1].name, "Driver Pretend 1");
  EXPECT_EQ(probe.gpus[1].uuid, "GPU-11111111-1111-1111-1111-111111111111");
  EXPECT_EQ(probe.gpus[1].memory_total, 16ull << 30);
}

TEST(Probe, FindsNothingWithoutEitherLibraryAndThatIsNoError) {
  setenv("TANDEM_NVML_LIBRARY", "libno-such-nvml.so", 1);
  setenv("TANDEM_CUDA_LIBRARY", "libno-such-cuda.so", 1);
  const GpuProbe probe = probe_gpus();
  EXPECT_EQ(probe.source, "none");
  EXPECT_TRUE(probe.gpus.empty());
}

TEST(Probe, LeavesNoCudaDriverInitialised) {
  probe_gpus();
  const DriverState state = cuda_driver_state();
  EXPECT_TRUE(state == DriverState::not_loaded || state == DriverState::not_initialised);
}

TEST(CudaVisibleDevices, IsReadAsCudaReadsIt) {
  const auto gpus = fake_nvml(4).gpus;
  const auto visible = [&](std::optional<std::string> variable) {
    std::vector<int> indices;
    for (const GpuInfo& gpu : apply_cuda_visible_devices(gpus, variable))
      indices.push_back(gpu.index);
    return indices;
  };
  using Indices = std::vector<int>;
  EXPECT_EQ(visible(std::nullopt), (Indices{0, 1, 2, 3}));
  EXPECT_EQ(visible(""), Indices{});
  EXPECT_EQ(visible("2,0"), (Indices{2, 0}));
  EXPECT_EQ(visible("1,9,2"), Indices{1});  // the first that does not exist ends the list
  EXPECT_EQ(visible("-1"), Indices{});
  EXPECT_EQ(visible("3,3"), Indices{3});
  EXPECT_EQ(visible("GPU-00000002-pretend, 0"), (Indices{2, 0}));
  EXPECT_EQ(visible("GPU-00000003"), Indices{3});
  EXPECT_EQ(visible("GPU-0"), Indices{});  // a prefix of all of them
}

TEST(VisibleGpus, CountsAmongWhatCudaVisibleDevicesLeaves) {
  const auto left = apply_cuda_visible_devices(fake_nvml(4).gpus, "3,2,1");
  EXPECT_EQ(uuids(apply_visible_gpus(left, "0,2")),
            (Uuids{"GPU-00000003-pretend", "GPU-00000001-pretend"}));
  EXPECT_EQ(uuids(apply_visible_gpus(left, "GPU-00000002-pretend")), Uuids{"GPU-00000002-pretend"});
  EXPECT_EQ(apply_visible_gpus(left, std::nullopt).size(), 3u);
}

TEST(VisibleGpus, RefusesWhatNamesNoGpu) {
  const auto gpus = fake_nvml(2).gpus;
  const auto refusal = [&](const std::string& setting) {
    const Error error = error_of([&] { apply_visible_gpus(gpus, setting); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_EQ(error.hint(), "name GPUs as in `visible_gpus=0,1`, or leave it null for all");
    return std::string(error.what());
  };
  EXPECT_EQ(refusal("7"),
            "`training.visible_gpus` is \"7\", but `7` names no GPU: the GPUs here are 0-1");
  EXPECT_EQ(refusal("a"),
            "`training.visible_gpus` is \"a\", but `a` names no GPU: the GPUs here are 0-1");
  EXPECT_EQ(refusal("0,-1"),
            "`training.visible_gpus` is \"0,-1\", but `-1` names no GPU: the GPUs here are 0-1");
  EXPECT_EQ(refusal(""), "`training.visible_gpus` is empty, which names no GPU");
  EXPECT_EQ(refusal("1,1"), "`training.visible_gpus` is \"1,1\", which names GPU 1 twice");
}

}  // namespace
}  // namespace tandem
