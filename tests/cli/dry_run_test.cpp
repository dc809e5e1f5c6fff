// `tandem train --dry-run`: standard output and exit code, byte for byte.
#include <gtest/gtest.h>

#include "support/program.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

ProgramRun dry_run(Words words) {
  words.insert(words.begin(), {"train", "--dry-run"});
  return run_program(words);
}

std::string before_plan(const std::string& out) { return out.substr(0, out.find("\nPlan\n")); }

const std::string last_two_lines =
    "❌ Multi-GPU mode was requested but configuration failed\n"
    "   Please check your GPU indices and ensure you have at least 2 GPUs\n";

TEST(DryRun, PrintsTheStartUpLogOfTwoGpus) {
  const ProgramRun run = dry_run({"--simulate-gpus", "4", "--data-gpu", "2", "--model-gpu", "3"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(before_plan(run.out),
            "🎯 Configuring Multi-GPU Mode...\n"
            "   Data Processing GPU: 2\n"
            "   Model Training GPU: 3\n"
            "   Set visible devices: GPU 2 and GPU 3\n"
            "   Configured memory growth for data GPU\n"
            "   Configured memory growth for model GPU\n"
            "✅ Multi-GPU configuration completed successfully\n"
            "🚀 Intelligent GPU Pipeline: Multi-GPU Mode\n"
            "   - Data Processing GPU: 2\n"
            "   - Model Training GPU: 3\n"
            "   - Prefetching to /GPU:0 with buffer_size=25\n"
            "🎯 Multi-GPU Mode: Model will be placed on /GPU:1\n"
            "   (Original GPU 3 is now mapped to GPU:1)\n"
            "Creating model on device: /GPU:1\n");
  EXPECT_NE(run.out.find("  strategy             data on /gpu:0, model on /gpu:1\n"),
            std::string::npos);
}

TEST(DryRun, PrintsTheStartUpLogOfOneGpu) {
  const ProgramRun run = dry_run({"--simulate-gpus", "1"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(before_plan(run.out),
            "🚀 Intelligent GPU Pipeline: Single-GPU Buffered Mode\n"
            "   - Buffer Size: 50\n"
            "   - Smart Prefetching: Enabled\n"
            "   - Prefetching to /GPU:0 with buffer_size=50\n");
}

TEST(DryRun, FollowsBufferSizeUnderEachOfItsNames) {
  for (const Words& words : {Words{"--buffer-size", "100"}, Words{"pipeline_buffer_size=100"},
                             Words{"data.prefetch_buffer_size=100"}}) {
    Words all = {"--simulate-gpus", "2", "--data-gpu", "0", "--model-gpu", "1"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_NE(dry_run(all).out.find("   - Prefetching to /GPU:0 with buffer_size=50\n"),
              std::string::npos)
        << words[0];
  }
  const ProgramRun two =
      dry_run({"--simulate-gpus", "1", "--buffer-size", "40", "prefetch_buffer_size=16"});
  EXPECT_EQ(two.code, 1);
  EXPECT_NE(two.err.find("40"), std::string::npos);
  EXPECT_NE(two.err.find("16"), std::string::npos);
}

struct Refusal {
  Words words;
  std::string first_lines;
};

TEST(DryRun, RefusesWithTheContractsLinesAndExitOne) {
  const std::vector<Refusal> refusals = {
      {{"--simulate-gpus", "1", "--data-gpu", "2", "--model-gpu", "3"},
       "❌ Multi-GPU requires at least 2 GPUs, found 1\n   Falling back to single-GPU mode\n"},
      {{"--simulate-gpus", "0", "--data-gpu", "0", "--model-gpu", "1"},
       "❌ Multi-GPU requires at least 2 GPUs, found 0\n   Falling back to single-GPU mode\n"},
      {{"--simulate-gpus", "2", "--data-gpu", "5", "--model-gpu", "1"},
       "❌ Invalid data_gpu=5, must be 0-1\n"},
      {{"--simulate-gpus", "2", "--data-gpu", "0", "--model-gpu", "2"},
       "❌ Invalid model_gpu=2, must be 0-1\n"},
      {{"--simulate-gpus", "2", "--data-gpu", "-1", "--model-gpu", "1"},
       "❌ Invalid data_gpu=-1, must be 0-1\n"},
      {{"--simulate-gpus", "2", "--data-gpu", "one", "--model-gpu", "1"},
       "❌ Invalid data_gpu=one, must be 0-1\n"},
      {{"--simulate-gpus", "2", "--data-gpu", "1", "--model-gpu", "1"},
       "❌ data_gpu and model_gpu must be different\n"},
      {{"--simulate-gpus", "2", "--data-gpu", "1"},
       "❌ --model-gpu is missing: --data-gpu was given, and Multi-GPU mode needs both\n"},
      {{"--simulate-gpus", "2", "--model-gpu", "1"},
       "❌ --data-gpu is missing: --model-gpu was given, and Multi-GPU mode needs both\n"},
  };
  for (const Refusal& refusal : refusals) {
    const ProgramRun run = dry_run(refusal.words);
    EXPECT_EQ(run.code, 1) << refusal.first_lines;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err, refusal.first_lines + last_two_lines);
  }
}

TEST(DryRun, SimulatesByEnvironmentToo) {
  const ProgramRun run =
      run_program({"train", "--dry-run", "--multi-gpu"}, {{"TANDEM_SIMULATE_GPUS", "3"}});
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.out.find("mirrored over /gpu:0, /gpu:1, /gpu:2"), std::string::npos);
  const ProgramRun wrong = run_program({"train", "--dry-run"}, {{"TANDEM_SIMULATE_GPUS", "two"}});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_EQ(wrong.err, "error: TANDEM_SIMULATE_GPUS is \"two\"; expected a whole number\n");
}

TEST(DryRun, VisibleGpusAreCheckedAndUsed) {
  const auto strategy = [](const std::string& visible) {
    return dry_run({"--simulate-gpus", "4", "multi_gpu=true", "visible_gpus=" + visible});
  };
  EXPECT_NE(strategy("\"0\"").out.find("strategy             one device /gpu:0\n"),
            std::string::npos);
  EXPECT_NE(strategy("0,1").out.find("strategy             mirrored over /gpu:0, /gpu:1\n"),
            std::string::npos);
  for (const char* wrong : {"7", "\"\"", "a"}) {
    const ProgramRun run = strategy(wrong);
    EXPECT_EQ(run.code, 1) << wrong;
    EXPECT_NE(run.err.find("error: `training.visible_gpus` is "), std::string::npos) << run.err;
  }
}

TEST(DryRun, PlansEveryStageFromNothing) {
  for (const char* stage : {"bytes", "dvae", "gpt", "decoder"}) {
    const ProgramRun run = dry_run({"--simulate-gpus", "1", "--stage", stage});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_NE(run.out.find("  memory, each model   weights "), std::string::npos) << run.out;
  }
}

TEST(DryRun, EachOfAllStagesHasItsOwnRateAndSteps) {
  const ProgramRun run = dry_run({"--stage", "all"});
  EXPECT_NE(run.out.find("  learning rate        dvae 0.0003, gpt 0.0003, decoder 0.0002, "),
            std::string::npos)
      << run.out;
  EXPECT_EQ(dry_run({"--stage", "all", "--stage-steps", "1,2"}).code, 1);
}

// The contract's usage names no stage.
TEST(DryRun, SpeechAsksForAVoice) {
  const std::string demo = TANDEM_SOURCE_DIR "/assets/demo";
  const ProgramRun run =
      dry_run({"--simulate-gpus", "2", "--data-gpu", "0", "--model-gpu", "1", "--train-data", demo,
               "--val-data", demo, "--batch-size", "32", "--epochs", "100"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("stage all, as the data is speech; --stage names another"),
            std::string::npos)
      << run.out;
  EXPECT_EQ(dry_run({"--train-data", TANDEM_SOURCE_DIR "/LICENSE"}).out.find("stage all"),
            std::string::npos);
}

TEST(DryRun, TouchesNoData) {
  const ProgramRun run = dry_run(
      {"--simulate-gpus", "1", "--train-data", "nowhere", "--checkpoint-dir", "nowhere-run"});
  EXPECT_EQ(run.code, 0);
  EXPECT_FALSE(std::filesystem::exists("nowhere-run"));
}

}  // namespace
}  // namespace tandem
