#include "device/device_scope.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "device/simulated.h"
#include "support/captured.h"

namespace tandem {
namespace {

TEST(DeviceScope, ChargesMemoryToTheDeviceItIsOpenOn) {
  const auto devices = simulate_devices(2);
  at::Tensor on_first, on_second;
  {
    DeviceScope scope(*devices[0]);
    on_first = at::zeros({1000}, scope.options().dtype(at::kFloat));
  }
  {
    DeviceScope scope(*devices[1]);
    on_second = at::zeros({500}, scope.options().dtype(at::kFloat));
  }
  EXPECT_EQ(devices[0]->memory().used(), 4000u);
  EXPECT_EQ(devices[1]->memory().used(), 2000u);
  // Freed on another thread, with no scope open: still credited to its own device.
  std::thread([tensor = std::move(on_first)]() mutable { tensor.reset(); }).join();
  EXPECT_EQ(devices[0]->memory().used(), 0u);
  EXPECT_EQ(devices[1]->memory().used(), 2000u);
  EXPECT_EQ(devices[0]->memory().peak(), 4000u);
}

TEST(DeviceScope, CountsOperationsWhereTheyRan) {
  const auto devices = simulate_devices(2);
  {
    DeviceScope scope(*devices[0]);
    at::ones({4}) + at::ones({4});
  }
  const auto names = devices[0]->operations().by_name();
  EXPECT_EQ(names.at("aten::add"), 1u);
  EXPECT_EQ(names.at("aten::ones"), 2u);
  EXPECT_EQ(devices[1]->operations().total(), 0u);
  at::ones({4});  // outside every scope: nobody's
  EXPECT_EQ(devices[0]->operations().by_name().at("aten::ones"), 2u);
}

TEST(DeviceScope, CountsTheBackwardPassToo) {
  const auto devices = simulate_devices(2);
  DeviceScope scope(*devices[1]);
  at::Tensor x = at::ones({8}, at::kFloat).requires_grad_(true);
  devices[1]->operations().reset();
  (x * x).sum().backward();
  EXPECT_EQ(devices[1]->operations().by_name().at("aten::expand"), 1u);  // SumBackward
  EXPECT_EQ(devices[0]->operations().total(), 0u);
  EXPECT_TRUE(at::equal(x.grad(), at::full({8}, 2.0f)));
}

TEST(DeviceScope, NestsAndEnds) {
  const auto devices = simulate_devices(2);
  EXPECT_EQ(DeviceScope::current(), nullptr);
  DeviceScope outer(*devices[0]);
  {
    DeviceScope inner(*devices[1]);
    EXPECT_EQ(DeviceScope::current(), devices[1]);
  }
  EXPECT_EQ(DeviceScope::current(), devices[0]);
  std::thread([] { EXPECT_EQ(DeviceScope::current(), nullptr); }).join();
}

TEST(MemoryLimit, StopsAnAllocationBeyondItAndTakesNothing) {
  DeviceRequest request;
  request.simulate_gpus = 1;
  request.memory_isolation = true;
  request.model_gpu_memory = 1;  // MB
  configure_devices(request);
  LogicalDevice& device = DeviceRegistry::get().find("/GPU:0");
  DeviceScope scope(device);
  const at::Tensor small = at::zeros({100000}, at::kFloat);
  const Error error = error_of([] { at::zeros({200000}, at::kFloat); });
  EXPECT_EQ(error.kind(), ErrorKind::memory);
  EXPECT_EQ(exit_code(error.kind()), 5);
  EXPECT_STREQ(error.what(),
               "/GPU:0 is out of memory: 781.2 KiB asked for, 390.6 KiB in use, limit 1.0 MiB");
  EXPECT_EQ(device.memory().used(), 400000u);
  const at::Tensor fits = at::zeros({100000}, at::kFloat);  // and the device goes on
  EXPECT_EQ(device.memory().used(), 800000u);
}

TEST(MemoryLimit, HoldsUnderManyThreads) {
  const auto devices = simulate_devices(1);
  MemoryLedger& ledger = devices[0]->memory();
  ledger.set_limit(1000000);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      DeviceScope scope(*devices[0]);
      for (int i = 0; i < 200; ++i) {
        try {
          const at::Tensor tensor = at::empty({60000}, at::kFloat);
          EXPECT_LE(ledger.used(), 1000000u);
        } catch (const Error&) {
          ++refused;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ledger.used(), 0u);
  EXPECT_LE(ledger.peak(), 1000000u);
}

TEST(Simulated, MemoryAndSlownessComeFromTheEnvironment) {
  setenv("TANDEM_SIMULATE_MEMORY", "100,200", 1);
  setenv("TANDEM_SIMULATE_SLOWNESS", "1,2.5", 1);
  const auto devices = simulate_devices(3);
  EXPECT_EQ(devices[0]->memory().limit(), 100u << 20);
  EXPECT_EQ(devices[2]->memory().limit(), 200u << 20);
  EXPECT_DOUBLE_EQ(devices[1]->info().slowness, 2.5);
  setenv("TANDEM_SIMULATE_SLOWNESS", "fast", 1);
  EXPECT_STREQ(error_of([] { simulate_devices(1); }).what(),
               "TANDEM_SIMULATE_SLOWNESS is \"fast\"; expected positive numbers such as `1,2.5`");
}

}  // namespace
}  // namespace tandem
