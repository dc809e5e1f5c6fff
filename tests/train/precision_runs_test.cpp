// Runs in every precision where no GPU is.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "checkpoint/run_folder.h"
#include "device/simulated.h"
#include "train/rules/loss_scale.h"
#include "train/seen_run.h"
#include "train/voice_corpus.h"

namespace tandem {
namespace {

constexpr int64_t steps = 4;

Config in_precision(Config config, const std::string& precision) {
  config.training.precision = precision;
  config.paths.checkpoint_dir += "-" + precision;
  config.observe.sample_count = 0;
  return config;
}

std::optional<double> loss_scale_in(const Config& config) {
  const Checkpoint saved = RunFolder(config.paths.checkpoint_dir).load_latest().value();
  for (const auto& [name, tensor] : saved.optimizer)
    if (name == "loss_scale") return tensor.item<double>();
  return std::nullopt;
}

std::string warning_of(const std::string& stage, const std::string& precision) {
  return "training.precision is " + precision + "; /GPU:0 computes the " + stage +
         " stage in float32\n";
}

TEST(PrecisionRuns, TheGptIsComputedInFloat32AndSaysSo) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  ASSERT_FALSE(run(corpus.config("dvae", 2, "start")).failed);
  const Config gpt = corpus.gpt_config(steps, "gpt");
  const Seen plain = run(in_precision(gpt, "fp32"));
  ASSERT_FALSE(plain.failed) << plain.error.what();
  EXPECT_EQ(plain.err.find("training.precision"), std::string::npos) << plain.err;
  for (const std::string precision : {"tf32", "bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    const Seen seen = run(in_precision(gpt, precision));
    ASSERT_FALSE(seen.failed) << seen.error.what();
    EXPECT_NE(seen.err.find(warning_of("gpt", precision)), std::string::npos) << seen.err;
    // A loss scale is a power of two: it changes no bit of what is large enough to be a float32.
    expect_near(seen.figures, plain.figures, precision == "fp16" ? 1e-6 : 0);
  }
  EXPECT_FALSE(loss_scale_in(in_precision(gpt, "fp32")).has_value());
  EXPECT_EQ(loss_scale_in(in_precision(gpt, "fp16")), LossScaleOptions{}.first);
}

TEST(PrecisionRuns, TheDvaeIsComputedInHalfFloatsHere) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  const Config dvae = corpus.config("dvae", steps, "dvae");
  const Seen plain = run(in_precision(dvae, "fp32"));
  ASSERT_FALSE(plain.failed) << plain.error.what();
  const Seen tensor_float = run(in_precision(dvae, "tf32"));
  EXPECT_NE(tensor_float.err.find(warning_of("dvae", "tf32")), std::string::npos);
  expect_near(tensor_float.figures, plain.figures, 0);

  const Seen half = run(in_precision(dvae, "fp16"));
  ASSERT_FALSE(half.failed) << half.error.what();
  EXPECT_EQ(half.err.find("in float32"), std::string::npos) << half.err;
  EXPECT_EQ(half.train.size(), static_cast<size_t>(steps));
  for (const auto& [step, loss] : half.train) {
    EXPECT_TRUE(std::isfinite(loss)) << step;
    EXPECT_NEAR(loss, plain.train.at(step), 0.02 * plain.train.at(step)) << step;
  }
  EXPECT_NE(half.train, plain.train) << "else it was computed in float32";
  // Each step that overflowed was left out and halved the scale.
  const int64_t skipped = RunFolder(corpus.folder / "dvae-fp16").latest_state()->skipped;
  EXPECT_LT(skipped, steps);
  EXPECT_EQ(loss_scale_in(in_precision(dvae, "fp16")),
            std::ldexp(LossScaleOptions{}.first, -static_cast<int>(skipped)));
}

}  // namespace
}  // namespace tandem
