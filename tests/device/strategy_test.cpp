#include <gtest/gtest.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "support/captured.h"
#include "support/temporary_folder.h"
#include "tandem/config.h"
#include "tandem/devices.h"

namespace tandem {
namespace {

DeviceRequest request_of(const Config& config, int gpus) {
  DeviceRequest request;
  request.simulate_gpus = gpus;
  request.multi_gpu = config.training.multi_gpu;
  request.visible_gpus = config.training.visible_gpus;
  return request;
}

// `multi_gpu` set in each of the three ways.
std::vector<Config> three_ways(bool multi_gpu) {
  TestFolder folder;
  const std::string word = multi_gpu ? "true" : "false";
  return {Config{.training = {.multi_gpu = multi_gpu}},
          Config::from_overrides({"multi_gpu=" + word}),
          Config::from_yaml(folder.write("c.yaml", "training:\n  multi_gpu: " + word + "\n"))};
}

// Table 000-4.
TEST(Strategy, FollowsTheTableForEveryCountAndEveryWayToSetIt) {
  struct Row {
    int gpus;
    bool multi_gpu;
    std::string expected;
  };
  const std::vector<Row> table = {
      {0, false, "CPU"},
      {0, true, "CPU"},
      {1, false, "one device /gpu:0"},
      {1, true, "one device /gpu:0"},
      {2, false, "one device /gpu:0"},
      {2, true, "mirrored over /gpu:0, /gpu:1"},
      {4, false, "one device /gpu:0"},
      {4, true, "mirrored over /gpu:0, /gpu:1, /gpu:2, /gpu:3"},
  };
  for (const Row& row : table) {
    for (const Config& config : three_ways(row.multi_gpu)) {
      configure_devices(request_of(config, row.gpus));
      const Strategy strategy = setup_gpu_strategy(config.training.multi_gpu);
      EXPECT_EQ(strategy.describe(), row.expected)
          << row.gpus << " GPUs, multi_gpu " << row.multi_gpu;
    }
  }
}

TEST(Strategy, VisibleGpusNarrowTheTable) {
  const auto strategy_with = [](const std::string& visible) {
    const Config config{.training = {.multi_gpu = true, .visible_gpus = visible}};
    configure_devices(request_of(config, 4));
    return setup_gpu_strategy(true).describe();
  };
  EXPECT_EQ(strategy_with("0"), "one device /gpu:0");
  EXPECT_EQ(strategy_with("0,1"), "mirrored over /gpu:0, /gpu:1");
  for (const char* wrong : {"7", "", "a"}) {
    EXPECT_EQ(error_of([&] { strategy_with(wrong); }).kind(), ErrorKind::config) << wrong;
  }
}

TEST(Strategy, DualNamesDataAndModelDevices) {
  DeviceRequest request;
  request.simulate_gpus = 3;
  request.data_gpu = "0";
  request.model_gpu = "1,2";
  capture([&] { configure_devices(request); });
  const Strategy strategy = setup_gpu_strategy(false);
  EXPECT_EQ(strategy.kind, StrategyKind::dual);
  EXPECT_EQ(strategy.data_device, "/GPU:0");
  EXPECT_EQ(strategy.describe(), "data on /gpu:0, model on /gpu:1, /gpu:2");
}

TEST(DeviceContext, ExplicitThenGpuThenCpu) {
  EXPECT_EQ(get_device_context().device(), "/CPU:0");
  DeviceRequest request;
  request.simulate_gpus = 2;
  configure_devices(request);
  EXPECT_EQ(get_device_context().device(), "/GPU:0");
  EXPECT_EQ(get_device_context("/GPU:1").device(), "/GPU:1");
  EXPECT_EQ(get_device_context("gpu:1").device(), "/GPU:1");
  EXPECT_EQ(get_device_context("/cpu:0").device(), "/CPU:0");
  for (const char* wrong : {"/GPU:2", "/GPU:-1", "/GPU:x", "tpu", ""}) {
    const Error error = error_of([&] { get_device_context(wrong); });
    EXPECT_EQ(error.kind(), ErrorKind::device) << wrong;
  }
  EXPECT_EQ(DeviceScope::current(), nullptr);
}

}  // namespace
}  // namespace tandem
