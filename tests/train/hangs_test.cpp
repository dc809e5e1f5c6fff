// Threads that never come back, and data that breaks while it is prepared.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "checkpoint/run_folder.h"
#include "train/seen_run.h"

namespace tandem {
namespace {

DeviceRequest one_prepares_for_three() {
  DeviceRequest request;
  request.simulate_gpus = 4;
  request.data_gpu = "0";
  request.model_gpu = "1,2,3";
  request.multi_gpu = true;
  return request;
}

struct FaultyRun {
  explicit FaultyRun(const char* fault) {
    setenv("TANDEM_FAULT", fault, 1);
    config.data.model_start_delay = 0.05;
    config.data.train_data = TANDEM_SOURCE_DIR "/LICENSE";
    config.data.batch_size = 4;
    config.training.multi_gpu = true;
    config.training.max_steps = 40;
    config.training.save_step = 2;
    config.training.collective_timeout = 1.0;
    config.paths.checkpoint_dir = (folder / "run").string();
  }
  Error failure(const TrainHooks& hooks = {}) {
    Error error(ErrorKind::internal, "");
    said = capture([&] {
      configure_devices(one_prepares_for_three());
      error = error_of([&] { train(config, hooks); });
    });
    return error;
  }
  TestFolder folder;
  Config config;
  Captured said;
};

// It is in a call that never comes back: nobody waits for it.
TEST(Hangs, ARankThatNeverComesBackIsLeftBehind) {
  FaultyRun run("hang:rank=1,step=5");
  const Error error = run.failure();
  EXPECT_EQ(exit_code(error.kind()), 7);
  EXPECT_NE(std::string(error.what()).find("rank 1 of 3 did not arrive"), std::string::npos)
      << error.what();
  EXPECT_NE(run.said.err.find("1 of 3 ranks did not come back within 2 s of that"),
            std::string::npos)
      << run.said.err;
  EXPECT_EQ(RunFolder(run.folder / "run").load_latest()->state.step, 4);
}

TEST(Hangs, APreparationThatNeverComesBackHoldsUpNoFailure) {
  FaultyRun run("hang:rank=data,step=30");
  const Error error = run.failure({.on_step = [](const StepReport& report) {
    if (report.step == 6) throw Error(ErrorKind::io, "the metrics cannot be written");
  }});
  EXPECT_STREQ(error.what(), "the metrics cannot be written");
  EXPECT_NE(run.said.err.find("the preparation of batches did not come back within 2 s"),
            std::string::npos)
      << run.said.err;
}

TEST(Hangs, APreparationThatFailsEndsTheRunWithItsOwnError) {
  FaultyRun run("throw:rank=data,step=7");
  const Error error = run.failure();
  EXPECT_STREQ(error.what(), "fault on purpose in the preparation of step 7");
}

TEST(Hangs, ADataDeviceWithoutMemoryEndsTheRunWithItsExitCode) {
  FaultyRun run("oom:rank=data,step=7");
  const Error error = run.failure();
  EXPECT_EQ(exit_code(error.kind()), 5) << error.what();
}

TEST(Hangs, ASlowPreparationChangesNothing) {
  FaultyRun run("slow:rank=data,step=8");
  run.config.training.max_steps = 12;
  const Figures slow = figures_on(one_prepares_for_three(), run.config);
  unsetenv("TANDEM_FAULT");
  run.config.paths.checkpoint_dir += "-usual";
  expect_near(figures_on(one_prepares_for_three(), run.config), slow, 0);
}

}  // namespace
}  // namespace tandem
