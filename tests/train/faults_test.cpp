// Runs in which something breaks, and what each device's memory does.
#include "train/faults.h"

#include "checkpoint/run_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "device/simulated.h"
#include "support/captured.h"
#include "support/temporary_folder.h"
#include "tandem/trainer.h"
#include "train/memory_watch.h"
#include "train/plan.h"

namespace tandem {
namespace {

Config mirrored_run(const std::filesystem::path& folder) {
  Config config;
  config.data.train_data = TANDEM_SOURCE_DIR "/LICENSE";
  config.data.batch_size = 8;
  config.training.multi_gpu = true;
  config.training.max_steps = 20;
  config.training.save_step = 2;
  config.training.collective_timeout = 1.0;
  config.paths.checkpoint_dir = folder.string();
  return config;
}

Error failure_of(const std::string& fault) {
  TestFolder folder;
  setenv("TANDEM_FAULT", fault.c_str(), 1);
  simulate_devices(4);
  Error error(ErrorKind::internal, "");
  capture([&] { error = error_of([&] { train(mirrored_run(folder / "run")); }); });
  EXPECT_TRUE(std::filesystem::exists(folder / "run" / "latest" /
                                      "state.json"));  // the last good one stays
  return error;
}

TEST(Faults, AVanishedRankStopsTheOthersWithItsNumber) {
  const Error error = failure_of("vanish:rank=2,step=5");
  EXPECT_EQ(error.kind(), ErrorKind::peer);
  EXPECT_EQ(exit_code(error.kind()), 7);
  EXPECT_NE(std::string(error.what())
                .find("timed out after 1.0s: rank 2 of 4 did not arrive (arrived: 0, 1, 3)"),
            std::string::npos)
      << error.what();
}

TEST(Faults, AFailedRankIsReportedByItsOwnError) {
  const Error error = failure_of("throw:rank=3,step=4");
  EXPECT_EQ(error.kind(), ErrorKind::internal);
  EXPECT_STREQ(error.what(), "fault on purpose at rank 3, step 4");
}

TEST(Faults, StepsThatAreNoNumbersStopTheRunAfterALimitAndLeaveADump) {
  TestFolder folder;
  setenv("TANDEM_FAULT", "nan:rank=1,step=6,steps=100", 1);
  simulate_devices(4);
  Config config = mirrored_run(folder / "run");
  config.training.max_bad_steps = 3;
  Error error(ErrorKind::internal, "");
  const Captured said = capture([&] { error = error_of([&] { train(config); }); });
  EXPECT_EQ(error.kind(), ErrorKind::numeric);
  EXPECT_EQ(exit_code(error.kind()), 6);
  EXPECT_NE(std::string(error.what()).find("8"), std::string::npos) << error.what();
  EXPECT_TRUE(std::filesystem::exists(folder / "run" / "latest" / "state.json"));
  const auto dump = folder / "run" / "bad-step-8";
  EXPECT_TRUE(std::filesystem::exists(dump / "latest" / "model.safetensors"));
  EXPECT_NE(said.err.find("enable_eager_debug"), std::string::npos) << said.err;
}

TEST(Faults, EagerDebuggingStopsAtTheFirstOperationThatGivesNoNumber) {
  TestFolder folder;
  setenv("TANDEM_FAULT", "nan:rank=1,step=6", 1);
  simulate_devices(4);
  Config config = mirrored_run(folder / "run");
  config.training.enable_eager_debug = true;
  config.training.enable_graph_mode = false;
  Error error(ErrorKind::internal, "");
  capture([&] { error = error_of([&] { train(config); }); });
  EXPECT_EQ(error.kind(), ErrorKind::numeric);
  // What rank 1 did, not the sums in which the others met it.
  EXPECT_EQ(std::string(error.what())
                .find("step 6: the first number that is not one comes out of `aten::fill_`"),
            0U)
      << error.what();
  EXPECT_TRUE(std::filesystem::exists(folder / "run" / "latest" / "state.json"));
}

TEST(Faults, OneStepThatIsNoNumberIsLeftOutAndCounted) {
  TestFolder folder;
  setenv("TANDEM_FAULT", "nan:rank=1,step=6", 1);
  simulate_devices(4);
  std::vector<int64_t> skipped;
  TrainHooks hooks;
  hooks.on_step = [&](const StepReport& report) {
    if (!report.skipped.empty()) skipped.push_back(report.step);
  };
  TrainResult result;
  capture([&] { result = train(mirrored_run(folder / "run"), hooks); });
  EXPECT_EQ(result.last_step, 20);
  EXPECT_EQ(skipped, std::vector<int64_t>{6});
  EXPECT_EQ(RunFolder(folder / "run").latest_state()->skipped, 1);
}

TEST(Faults, AHangingRankIsNamedAfterTheTimeout) {
  const Error error = failure_of("hang:rank=2,step=5");
  EXPECT_EQ(error.kind(), ErrorKind::peer);
  EXPECT_NE(std::string(error.what()).find("rank 2 of 4 did not arrive"), std::string::npos)
      << error.what();
}

TEST(Faults, ADeviceOutOfMemoryGoesOnInParts) {
  TestFolder folder;
  setenv("TANDEM_FAULT", "oom:rank=1,step=6", 1);
  simulate_devices(4);
  TrainResult result;
  const Captured said = capture([&] { result = train(mirrored_run(folder / "run")); });
  EXPECT_EQ(result.last_step, 20);
  EXPECT_NE(said.err.find("ran out of memory"), std::string::npos) << said.err;
}

TEST(Faults, AFullDiskStopsTheRunAndTheLastGoodCheckpointStays) {
  const Error error = failure_of("disk:rank=0,step=7");
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(exit_code(error.kind()), 4);
}

TEST(Faults, ASlowRankOnlySlows) {
  TestFolder folder;
  setenv("TANDEM_FAULT", "slow:rank=1,step=18", 1);
  simulate_devices(4);
  TrainResult result;
  capture([&] { result = train(mirrored_run(folder / "run")); });
  EXPECT_EQ(result.last_step, 20);
}

TEST(Faults, AreReadStrictly) {
  EXPECT_FALSE(parse_fault("").has_value());
  const auto fault = parse_fault("vanish:rank=2,step=5");
  EXPECT_TRUE(fault->strikes(2, 5));
  EXPECT_FALSE(fault->strikes(2, 6));
  EXPECT_FALSE(fault->strikes(1, 5));
  for (const char* wrong :
       {"vanish", "explode:rank=1", "vanish:rank=x", "vanish:rnk=1", "vanish:rank=1:step=2"}) {
    EXPECT_EQ(error_of([&] { parse_fault(wrong); }).kind(), ErrorKind::config) << wrong;
  }
}

// Three simulated GPUs, data on 2, model on 0, with hard limits.
DeviceRequest isolated(int64_t model_megabytes) {
  DeviceRequest request;
  request.simulate_gpus = 3;
  request.data_gpu = "2";
  request.model_gpu = "0";
  request.memory_isolation = true;
  request.data_gpu_memory = 64;
  request.model_gpu_memory = model_megabytes;
  return request;
}

TEST(MemoryIsolation, StopsARunThatNeedsMore) {
  TestFolder folder;
  Config config = mirrored_run(folder / "run");
  config.training.enable_memory_isolation = true;
  Error error(ErrorKind::internal, "");
  capture([&] {
    configure_devices(isolated(2));
    error = error_of([&] { train(config); });
  });
  EXPECT_EQ(error.kind(), ErrorKind::memory);
  EXPECT_NE(std::string(error.what()).find("/GPU:1 is out of memory"), std::string::npos);
}

TEST(MemoryIsolation, ReportsBothDevicesEverySoManySteps) {
  TestFolder folder;
  Config config = mirrored_run(folder / "run");
  config.training.enable_memory_isolation = true;
  config.observe.memory_step = 10;
  const Captured printed = capture([&] {
    configure_devices(isolated(256));
    train(config);
  });
  EXPECT_NE(printed.out.find("[Step 10] Data GPU 2: 0/64MB (0."), std::string::npos) << printed.out;
  EXPECT_NE(printed.out.find("[Step 20] Model GPU 0: "), std::string::npos);
  EXPECT_NE(printed.out.find("/256MB ("), std::string::npos);
  EXPECT_EQ(printed.out.find("[Step 15]"), std::string::npos);
}

TEST(MemoryWatch, WritesTheContractsLine) {
  EXPECT_EQ(MemoryWatch::line(100, "Data", 0, 5248ull << 20, 8192ull << 20),
            "[Step 100] Data GPU 0: 5248/8192MB (64.1%)");
}

TEST(MemoryWatch, WarnsOnlyAboutGrowthWithoutEnd) {
  MemoryWatch watch({});
  const auto warned = [&](const std::string& device, std::vector<uint64_t> readings) {
    bool any = false;
    for (uint64_t used : readings) any |= watch.grows_without_end(device, used);
    return any;
  };
  EXPECT_TRUE(warned("leaks", {100, 110, 121, 133, 146, 160}));
  EXPECT_FALSE(warned("settles", {100, 200, 300, 301, 301, 301, 301, 301}));
  EXPECT_FALSE(warned("swings", {100, 150, 100, 150, 100, 150, 100, 150}));
}

TEST(QueueCapacity, FollowsTheContract) {
  EXPECT_EQ(queue_capacity(50, StrategyKind::dual), 25u);
  EXPECT_EQ(queue_capacity(8, StrategyKind::dual), 6u);
  EXPECT_EQ(queue_capacity(100, StrategyKind::dual), 50u);
  EXPECT_EQ(queue_capacity(50, StrategyKind::one_device), 50u);
}

}  // namespace
}  // namespace tandem
