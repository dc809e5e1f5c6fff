#include "train/plan.h"

#include <gtest/gtest.h>

#include "device/logical_device.h"

namespace tandem {
namespace {

using Lines = std::vector<std::string>;

TrainingConfig on_gpu(const std::string& stage, const std::string& precision) {
  TrainingConfig training;
  training.stage = stage;
  training.precision = precision;
  return training;
}
Lines said(const TrainingConfig& training) { return step_lines(training, DeviceKind::cuda); }

const char* const fused = "✅ Graph mode ENABLED with kernel fusion";
const char* const plain = "✅ Graph mode ENABLED without kernel fusion";
const char* const off = "⚠️  Graph mode DISABLED - GPU utilization will be lower";

TEST(TrainPlan, SaysHowAStepWillRun) {
  for (const char* stage : {"gpt", "dvae", "decoder"})
    EXPECT_EQ(said(on_gpu(stage, "bf16")), Lines{fused}) << stage;
  EXPECT_EQ(said(on_gpu("decoder", "fp32")), Lines{fused});
  TrainingConfig training = on_gpu("gpt", "bf16");
  training.enable_kernel_fusion = false;
  EXPECT_EQ(said(training), Lines{plain});
  training.enable_graph_mode = false;
  EXPECT_EQ(said(training), Lines{off});
  training = on_gpu("dvae", "bf16");
  training.enable_eager_debug = true;
  EXPECT_EQ(said(training), Lines{off});
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::simulated})
    EXPECT_TRUE(step_lines(training, kind).empty());
}

TEST(TrainPlan, KnowsWhereALowerPrecisionChangesNothing) {
  EXPECT_FALSE(computes_in_float32(on_gpu("gpt", "bf16"), DeviceKind::cuda));
  EXPECT_TRUE(computes_in_float32(on_gpu("gpt", "bf16"), DeviceKind::simulated));
  EXPECT_TRUE(computes_in_float32(on_gpu("decoder", "fp16"), DeviceKind::cpu));
  EXPECT_FALSE(computes_in_float32(on_gpu("dvae", "bf16"), DeviceKind::cpu));
  EXPECT_FALSE(computes_in_float32(on_gpu("gpt", "fp32"), DeviceKind::cpu));
}

TEST(TrainPlan, SaysWhyNothingIsFusedAndWhereTheSettingChangesNothing) {
  const Lines lines = {plain, "   (fused is the gpt stage in bf16, without LoRA)"};
  EXPECT_EQ(said(on_gpu("gpt", "fp32")), lines);
  EXPECT_EQ(said(on_gpu("bytes", "bf16")), lines);
  TrainingConfig training = on_gpu("gpt", "bf16");
  training.lora_rank = 8;
  EXPECT_EQ(said(training), lines);
  training = on_gpu("decoder", "bf16");
  training.enable_kernel_fusion = false;
  EXPECT_EQ(said(training),
            (Lines{fused, "   (training.enable_kernel_fusion=false changes the gpt stage only)"}));
}

TEST(TrainPlan, CountsWhatAModelTakes) {
  TrainPlan plan;
  plan.parameters = 100;
  EXPECT_EQ(planned_bytes(plan, {}),
            (HeldBytes{{"weights", 400}, {"gradients", 400}, {"moments", 800}}));
  plan.frozen = 10;
  plan.half_gradients = 90;
  plan.activation_bytes = 7;
  TrainingConfig training;
  training.ema_decay = 0.99;
  EXPECT_EQ(planned_bytes(plan, training), (HeldBytes{{"weights", 400},
                                                      {"frozen weights", 40},
                                                      {"gradients", 220},
                                                      {"moments", 800},
                                                      {"moving average", 400},
                                                      {"activations", 7}}));
}

TEST(TrainPlan, ShowsWhatWasSeenInPlaceOfWhatWasPlanned) {
  TrainPlan plan;
  plan.strategy = {.kind = StrategyKind::cpu, .replicas = {"/CPU:0"}, .data_device = "/CPU:0"};
  plan.parameters = 1 << 20;
  plan.batch_size = 1;
  const auto memory = [&](const HeldBytes& held) -> std::string {
    for (const auto& [name, value] : plan_rows(plan, {}, held))
      if (name == "memory, each model") return value;
    return "nothing";
  };
  EXPECT_EQ(memory({}), "weights 4.0 MiB, gradients 4.0 MiB, moments 8.0 MiB");
  EXPECT_EQ(memory({{"gradients", 2 << 20}, {"buffers", 1 << 20}}),
            "weights 4.0 MiB, gradients 2.0 MiB, moments 8.0 MiB, buffers 1.0 MiB");
}

}  // namespace
}  // namespace tandem
