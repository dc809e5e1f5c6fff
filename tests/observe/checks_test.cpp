#include "observe/checks.h"

#include <gtest/gtest.h>

namespace tandem::tests {
namespace {

constexpr uint64_t gib = uint64_t{1} << 30;

GpuInfo good_gpu() {
  return {.index = 0,
          .name = "NVIDIA H200",
          .memory_total = 140 * gib,
          .memory_used = gib,
          .temperature = 40,
          .compute_capability = "9.0"};
}

GpuProbe machine(const GpuInfo& gpu) {
  return {.source = "nvml", .driver_version = "580.1", .cuda_version = "13.0", .gpus = {gpu}};
}

Check check_of(const GpuInfo& gpu) { return check_gpus(machine(gpu)).at(0); }

}  // namespace

TEST(Checks, VerdictsHaveTheirWords) {
  EXPECT_STREQ(to_string(Verdict::pass), "PASS");
  EXPECT_STREQ(to_string(Verdict::warn), "WARN");
  EXPECT_STREQ(to_string(Verdict::fail), "FAIL");
}

TEST(Checks, ABuildWithoutCudaWarns) {
  EXPECT_EQ(check_build("2.11.0", "13.0").verdict, Verdict::pass);
  EXPECT_EQ(check_build("2.11.0", "13.0").found, "LibTorch 2.11.0, CUDA 13.0");
  const Check check = check_build("2.11.0", "");
  EXPECT_EQ(check.verdict, Verdict::warn);
  EXPECT_EQ(check.found, "LibTorch 2.11.0, without CUDA");
  EXPECT_EQ(check.advice, "this program cannot use GPUs; build it where nvcc is installed");
}

TEST(Checks, ADriverOfTheSameOrANewerMajorPasses) {
  GpuProbe probe = machine(good_gpu());
  EXPECT_EQ(check_driver(probe, "13.0").verdict, Verdict::pass);
  EXPECT_EQ(check_driver(probe, "13.2").verdict, Verdict::pass);
  EXPECT_EQ(check_driver(probe, "12.8").verdict, Verdict::pass);
  EXPECT_EQ(check_driver(probe, "").verdict, Verdict::pass);
  EXPECT_EQ(check_driver(probe, "13.0").found, "580.1, serves CUDA 13.0; LibTorch wants 13.0");
  EXPECT_EQ(check_driver(probe, "13.0").advice, "");
}

TEST(Checks, ADriverThatIsTooOldFails) {
  GpuProbe probe = machine(good_gpu());
  probe.cuda_version = "12.9";
  const Check check = check_driver(probe, "13.0");
  EXPECT_EQ(check.verdict, Verdict::fail);
  EXPECT_EQ(check.advice, "update the driver to one that serves CUDA 13.0 or newer");
}

TEST(Checks, NoDriverWarns) {
  const Check check = check_driver({}, "13.0");
  EXPECT_EQ(check.verdict, Verdict::warn);
  EXPECT_EQ(check.found, "neither NVML nor a CUDA driver");
}

TEST(Checks, NoGpuWarns) {
  const auto checks = check_gpus({});
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].verdict, Verdict::warn);
  EXPECT_EQ(checks[0].found, "none visible: everything runs on the CPU");
}

TEST(Checks, AGoodGpuPasses) {
  const Check check = check_of(good_gpu());
  EXPECT_EQ(check.verdict, Verdict::pass);
  EXPECT_EQ(check.name, "GPU 0");
  EXPECT_EQ(check.found, "NVIDIA H200, 1.0 GiB of 140.0 GiB in use");
  EXPECT_EQ(check.advice, "");
}

TEST(Checks, EveryGpuIsChecked) {
  GpuProbe probe = machine(good_gpu());
  probe.gpus.push_back(
      {.index = 1, .name = "old", .memory_total = gib, .compute_capability = "6.1"});
  const auto checks = check_gpus(probe);
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].verdict, Verdict::pass);
  EXPECT_EQ(checks[1].verdict, Verdict::fail);
}

TEST(Checks, AnOldComputeCapabilityFails) {
  GpuInfo gpu = good_gpu();
  for (const char* old : {"7.0", "6.1", "3.5"}) {
    gpu.compute_capability = old;
    EXPECT_EQ(check_of(gpu).verdict, Verdict::fail) << old;
  }
  EXPECT_EQ(check_of(gpu).advice,
            "compute capability 3.5 is below 7.5, the oldest that CUDA 13 serves");
  for (const char* fine : {"7.5", "8.0", "10.0", "12.1", ""}) {
    gpu.compute_capability = fine;
    EXPECT_EQ(check_of(gpu).verdict, Verdict::pass) << fine;
  }
}

TEST(Checks, AGpuInUseWarns) {
  GpuInfo gpu = good_gpu();
  gpu.memory_used = 71 * gib;
  EXPECT_EQ(check_of(gpu).verdict, Verdict::warn);
  EXPECT_EQ(check_of(gpu).advice,
            "another process holds more than half of its memory: see nvidia-smi");
  gpu.memory_used = 70 * gib;
  EXPECT_EQ(check_of(gpu).verdict, Verdict::pass);
}

TEST(Checks, AHotGpuWarns) {
  GpuInfo gpu = good_gpu();
  gpu.temperature = 85;
  EXPECT_EQ(check_of(gpu).verdict, Verdict::warn);
  EXPECT_EQ(check_of(gpu).advice, "85 C: it may slow down to cool; check the fans");
  gpu.temperature.reset();
  EXPECT_EQ(check_of(gpu).verdict, Verdict::pass);
}

}  // namespace tandem::tests
