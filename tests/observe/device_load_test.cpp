#include "observe/device_load.h"

#include <gtest/gtest.h>

#include <thread>

#include "device/device_scope.h"
#include "device/registry.h"
#include "tandem/devices.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

const std::function<void()> busy_for_a_moment = [] {
  const auto start = Clock::now();
  while (seconds_since(start) < 0.1) {
  }
};

}  // namespace

TEST(GpuDriverLoad, AsksTheDriver) {
  setenv("TANDEM_FAKE_GPUS", "2", 1);
  const GpuDriverLoad driver(TANDEM_FAKE_NVML);
  EXPECT_DOUBLE_EQ(driver.utilisation("GPU-00000000-pretend"), 0.10);
  EXPECT_DOUBLE_EQ(driver.utilisation("GPU-00000001-pretend"), 0.11);
  EXPECT_EQ(driver.utilisation("GPU-00000002-pretend"), -1);
}

TEST(GpuDriverLoad, WithoutADriverKnowsNothing) {
  EXPECT_EQ(GpuDriverLoad("libno-such-library.so").utilisation("GPU-0"), -1);
  setenv("TANDEM_FAKE_NVML_BROKEN", "1", 1);
  EXPECT_EQ(GpuDriverLoad(TANDEM_FAKE_NVML).utilisation("GPU-00000000-pretend"), -1);
}

TEST(DeviceLoad, TellsABusySimulatedDeviceFromAnIdleOne) {
  configure_devices({.simulate_gpus = 2});
  const auto devices = devices_to_watch();
  ASSERT_EQ(devices.size(), 2U);
  DeviceLoad load(devices);
  for (LogicalDevice* device : devices) device->compute_stream().synchronize();
  load.read();
  devices[1]->compute_stream().run(busy_for_a_moment);
  devices[1]->compute_stream().synchronize();
  const auto readings = load.read();
  EXPECT_EQ(readings[0].name, "/GPU:0");
  EXPECT_EQ(readings[1].name, "/GPU:1");
  if (readings[1].utilisation < 0)
    GTEST_SKIP() << "this kernel keeps no /proc/self/task/*/schedstat";
  EXPECT_LT(readings[0].utilisation, 0.3);
  EXPECT_GT(readings[1].utilisation, 0.7);
}

TEST(DeviceLoad, CountsWorkOfThreadsThatOpenedTheDevicesScope) {
  configure_devices({.simulate_gpus = 2});
  const auto devices = devices_to_watch();
  DeviceLoad load(devices);
  const DeviceScope scope(*devices[1]);
  at::zeros({4});  // from now on this thread is known to work there
  load.read();
  busy_for_a_moment();
  const auto readings = load.read();
  if (readings[1].utilisation < 0) GTEST_SKIP() << "this kernel keeps no schedstat of threads";
  EXPECT_GT(readings[1].utilisation, 0.7);
  EXPECT_LT(readings[0].utilisation, 0.3);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(load.read()[1].utilisation, 0.3) << "waiting is not work";
}

TEST(DeviceLoad, ReadsTheLedgerOfADevice) {
  configure_devices({.simulate_gpus = 1});
  LogicalDevice& device = *devices_to_watch().at(0);
  DeviceLoad load({&device});
  const uint64_t before = load.read().at(0).used;
  at::Tensor held;
  {
    const DeviceScope scope(device);
    held = at::zeros({1 << 20});
  }
  EXPECT_GE(load.read().at(0).used, before + (4U << 20));
  EXPECT_EQ(load.read().at(0).limit, device.memory().limit());
}

TEST(DeviceLoad, WithoutAGpuWatchesTheProcessor) {
  const auto devices = devices_to_watch();
  ASSERT_EQ(devices.size(), 1U);
  DeviceLoad load(devices);
  EXPECT_EQ(load.read().at(0).utilisation, -1) << "nothing to compare with yet";
  busy_for_a_moment();
  const DeviceReading reading = load.read().at(0);
  EXPECT_EQ(reading.name, "/CPU:0");
  EXPECT_GT(reading.utilisation, 0);
  EXPECT_LE(reading.utilisation, 1);
  EXPECT_GT(reading.used, 1U << 20);
  EXPECT_GT(reading.limit, reading.used);
}

}  // namespace tandem::tests
