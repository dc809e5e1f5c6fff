// What a run says before its first step, in the contract's words and order (1.2, 2).
#include <gtest/gtest.h>

#include <regex>

#include "cli/voice_trainer.h"

namespace tandem {
namespace {

// Beside the settings, the plan and the steps: what begins with a picture, what is indented under
// it, and where the model goes.
std::string contract_lines(const std::string& text) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool pictured = !line.empty() && static_cast<unsigned char>(line[0]) >= 0x80;
    const bool indented = line.starts_with("   ");
    if (pictured || indented || line.starts_with("Creating model")) kept += line + "\n";
  }
  return kept;
}

// How many batches were ready, and when, is another each time.
std::string without_figures(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(\(\d+/\d+ batches ready after \d+\.\ds\))"),
                            "(so many batches ready after so long)");
}

const char* const native = "✅ SUCCESS: Using native data loading (GPU-optimized)\n";

// How a step runs (graph mode) is said of real GPUs only: see TrainPlan.SaysHowAStepWillRun.
TEST(TrainStartLines, AreTheContractsOnTwoGpus) {
  const VoiceTrainer trainer;
  const ProgramRun run =
      run_program(trainer.words({"--simulate-gpus", "4", "--data-gpu", "2", "--model-gpu", "3"}));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(without_figures(contract_lines(run.out)),
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
            "Creating model on device: /GPU:1\n" +
                std::string(native) +
                "🕐 Multi-GPU Mode: Waiting up to 2.0s for data pipeline to warm up...\n"
                "✅ Model training starting now (so many batches ready after so long)\n");
}

TEST(TrainStartLines, AreTheContractsOnOneGpu) {
  const VoiceTrainer trainer;
  const std::string pipeline =
      "🚀 Intelligent GPU Pipeline: Single-GPU Buffered Mode\n"
      "   - Buffer Size: 50\n"
      "   - Smart Prefetching: Enabled\n"
      "   - Prefetching to /GPU:0 with buffer_size=50\n";
  const ProgramRun run = run_program(trainer.words());
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(contract_lines(run.out), pipeline + native);
  const ProgramRun slow = run_program(trainer.words({"--fresh", "data.use_native_loading=false"}));
  ASSERT_EQ(slow.code, 0) << slow.err;
  EXPECT_EQ(
      slow.err,
      "⚠️  Native data loading is off: every file goes through the general decoder, which is "
      "slower\n");
  EXPECT_EQ(contract_lines(slow.out), pipeline);
}

}  // namespace
}  // namespace tandem
