// Data that never comes.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "checkpoint/run_folder.h"
#include "support/program.h"

namespace tandem {
namespace {

// A disk may come back; until then it is said what is waited for.
TEST(TrainHangs, DataThatStandsStillIsToldAndTwoCtrlCsEndIt) {
  const TestFolder folder;
  Program program({"train", "--simulate-gpus", "2", "--data-gpu", "0", "--model-gpu", "1",
                   "--train-data", TANDEM_SOURCE_DIR "/LICENSE", "--max-steps", "40",
                   "--checkpoint-dir", (folder / "run").string(), "training.save_step=2",
                   "training.collective_timeout=1", "data.model_start_delay=0.1"},
                  {{"TANDEM_FAULT", "hang:rank=data,step=9"}});
  const auto told = [&] {
    return program.read("err").find("/GPU:1 has waited for a batch for 1 s") != std::string::npos;
  };
  for (int i = 0; i < 3000 && !told(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  program.signal(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // or they would be one
  program.signal(SIGINT);
  const ProgramRun ended = program.wait();
  EXPECT_EQ(ended.code, 130);
  EXPECT_NE(ended.err.find("LICENSE` still reachable?"), std::string::npos) << ended.err;
  EXPECT_EQ(RunFolder(folder / "run").load_latest()->state.step, 8);
}

}  // namespace
}  // namespace tandem
