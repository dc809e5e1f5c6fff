// A run that is killed goes on to the same bits: it writes down what a run does that was left
// alone.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "checkpoint/run_folder.h"
#include "cli/voice_trainer.h"

namespace tandem {
namespace {

// Of each step that a run wrote down: what does not depend on how fast it was.
std::vector<std::string> steps_in(const std::filesystem::path& run, const std::string& split) {
  std::vector<std::string> steps;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string text; std::getline(file, text);) {
    const auto line = nlohmann::ordered_json::parse(text, nullptr, false);
    if (line.is_discarded() || line["split"] != split) continue;
    steps.push_back("step " + line["step"].dump());
    for (const char* key : {"loss", "gradient_norm", "learning_rate", "terms"})
      if (line.contains(key)) steps.back() += ", " + std::string(key) + " " + line[key].dump();
  }
  return steps;
}

void expect_same_bits(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(at::equal(a[i].second, b[i].second)) << a[i].first;
  }
}

// Two replicas; the second hangs in step 7, so that nothing ends before it is killed.
TEST(TrainBits, AreTheSameAfterTheRunWasKilled) {
  const VoiceTrainer trainer;
  ASSERT_EQ(run_program(trainer.words()).code, 0);
  const auto folder = [&](const std::string& name) { return trainer.corpus.folder / name; };
  const auto gpt = [&](const std::string& name) {
    return trainer.words({"--stage", "gpt", "--pretrained", trainer.run() + "/model",
                          "--simulate-gpus", "2", "--multi-gpu", "--max-steps", "8",
                          "--checkpoint-dir", folder(name).string(), "training.save_step=4",
                          "training.val_step=4", "training.ema_decay=0.9", "training.dropout=0.2",
                          "training.schedule=cosine", "training.check_replicas=1"});
  };
  const ProgramRun straight = run_program(gpt("straight"));
  ASSERT_EQ(straight.code, 0) << straight.err;

  Program killed(gpt("killed"), {{"TANDEM_FAULT", "hang:rank=1,step=7"}});
  const RunFolder saved(folder("killed"));
  const auto hangs = [&] {
    return saved.latest_state() && steps_in(folder("killed"), "train").size() == 6;
  };
  for (int i = 0; i < 3000 && !hangs(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  killed.signal(SIGKILL);
  EXPECT_EQ(killed.wait().code, 128 + SIGKILL);
  ASSERT_EQ(saved.latest_state()->step, 4) << "and steps 5 and 6 are lost";

  const ProgramRun rest = run_program(gpt("killed"));
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE(rest.out.find("goes on after step 4"), std::string::npos) << rest.out;
  const std::vector<std::string> steps = steps_in(folder("straight"), "train");
  EXPECT_EQ(steps.size(), 8u);
  EXPECT_EQ(steps_in(folder("killed"), "train"), steps);
  EXPECT_EQ(steps_in(folder("killed"), "val"), steps_in(folder("straight"), "val"));
  EXPECT_EQ(steps_in(folder("killed"), "val").size(), 2u);
  const Checkpoint one = RunFolder(folder("straight")).load_latest().value(),
                   other = saved.load_latest().value();
  expect_same_bits(one.weights, other.weights);
  expect_same_bits(one.average, other.average);
  EXPECT_FALSE(one.average.empty());
}

}  // namespace
}  // namespace tandem
