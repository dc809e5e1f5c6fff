#include "train/stages/dvae_learner.h"

#include <gtest/gtest.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "nn/tensors.h"
#include "train/dvae_making.h"

namespace tandem::tests {
namespace {

const std::string training_fixture =
    TANDEM_SOURCE_DIR "/tests/train/fixtures/dvae_training.safetensors";

// No revival, and codes that nobody chose are moved as coqui-tts moves them.
CodebookOptions as_coqui() { return {.warms_up = false, .keeps_unused = false, .revive_every = 0}; }

// Each number by its own size: codes that coqui-tts throws away lie far out.
double relative(const at::Tensor& found, const at::Tensor& expected) {
  return number(((found - expected).abs() / (1 + expected.abs())).max());
}

struct Cut {
  std::vector<int64_t> lengths;
  int64_t first, frames;
};

}  // namespace

TEST(DvaeLearner, TrainsAsCoquiDoes) {
  auto expected = read_safetensors(training_fixture).tensors;
  for (const std::string start : {"fresh", "settled"}) {
    Dvae dvae = made_dvae();
    const at::Tensor embed = dvae.encoder.codebook;
    const bool fresh = start == "fresh";
    dvae.cluster_size = fresh ? at::zeros({48}) : values("sizes", {48}, 1, 2);
    dvae.embed_avg = fresh ? embed.clone() : embed * dvae.cluster_size;
    DvaeLearner learner(dvae, {.commitment = 0.25, .codebook = as_coqui()});
    for (int64_t step = 0; step < 3; ++step) {
      Batch batch = dvae_batch("", {24, 24}, 24, 48);
      batch.fields[dvae_mels] = values("mels " + std::to_string(step), {2, 80, 24}, 2, -1);
      clear_gradients(learner);
      const at::Tensor terms = learner.add_gradients(0, batch, step_values(step + 1));
      EXPECT_LT(relative(terms, expected.at(start + ".losses")[step]), 1e-4) << start << step;
      descend(learner, 0.02);
      learner.finish_step(step_values(step + 1), taken());
      for (const char* name : {"embed", "cluster_size", "embed_avg"}) {
        const at::Tensor& truth = expected.at(start + "." + std::to_string(step) + "." + name);
        EXPECT_LT(relative(buffer_of(learner, name), truth), 1e-4) << start << step << name;
      }
    }
    for (const Phase& phase : learner.phases()) {
      for (const TrainedTensor& trained : phase.tensors) {
        const auto found = expected.find(start + ".after." + trained.name);
        if (found == expected.end()) continue;
        EXPECT_LT(relative(*trained.tensor, found->second), 1e-4) << start << trained.name;
      }
    }
  }
}

TEST(DvaeLearner, TrainsConvolutionsAndDecaysTheirWeightsOnly) {
  DvaeLearner learner(made_dvae(), {});
  const std::vector<Phase> phases = learner.phases();
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_EQ(phases[0].name, "dvae");
  EXPECT_EQ(phases[0].tensors.size(), 2u * (2 + 9 + 1 + 1 + 9 + 2 + 1));
  for (const TrainedTensor& trained : phases[0].tensors) {
    EXPECT_EQ(trained.decays, trained.name.ends_with(".weight")) << trained.name;
    EXPECT_FALSE(trained.name.starts_with("codebook")) << trained.name;
  }
}

TEST(DvaeLearner, PaddingAndCompanyChangeNothing) {
  const int64_t whole = 24 + 8 + 40;
  DvaeLearner together(made_dvae(), {}), apart(made_dvae(), {});
  clear_gradients(together);
  clear_gradients(apart);
  const at::Tensor loss =
      together.add_gradients(0, dvae_batch("clip", {24, 8, 40, 0}, 48, whole), step_values(1));
  at::Tensor sum = at::zeros({3});
  for (const Cut& cut : {Cut{{24}, 0, 24}, Cut{{8}, 1, 8}, Cut{{40}, 2, 40}})
    sum += apart.add_gradients(0, dvae_batch("clip", cut.lengths, cut.frames, whole, cut.first),
                               step_values(1));
  EXPECT_LT(largest_difference(loss, sum), 1e-6);
  const auto ours = gradients_of(together), theirs = gradients_of(apart);
  for (const auto& [name, gradient] : ours) {
    EXPECT_GT(number(gradient.abs().max()), 0) << name;
    EXPECT_LT(largest_difference(gradient, theirs.at(name)), 1e-5) << name;
  }
  together.finish_step(step_values(1), taken());
  apart.finish_step(step_values(1), taken());
  for (const char* name : {"embed", "cluster_size", "embed_avg"})
    EXPECT_LT(largest_difference(buffer_of(together, name), buffer_of(apart, name)), 1e-5) << name;
}

TEST(DvaeLearner, HalvesOfABatchSumToTheWhole) {
  const int64_t whole = 16 + 24 + 8 + 20;
  const auto make = [] { return std::make_unique<DvaeLearner>(made_dvae(), DvaeLearnerOptions{}); };
  const auto one = make(), left = make(), right = make();
  for (int64_t step = 1; step <= 4; ++step) {
    const std::string name = "batch " + std::to_string(step);
    const StepValues values = step_values(step);
    for (Learner* learner : {one.get(), left.get(), right.get()}) clear_gradients(*learner);
    const at::Tensor loss =
        one->add_gradients(0, dvae_batch(name, {16, 24, 8, 20}, 24, whole), values);
    const at::Tensor parts =
        left->add_gradients(0, dvae_batch(name, {16}, 24, whole), values) +
        right->add_gradients(0, dvae_batch(name, {24, 8, 20}, 24, whole, 1), values);
    EXPECT_LT(largest_difference(loss, parts), 1e-6) << step;
    const at::Tensor sums = left->sums()[0] + right->sums()[0];
    EXPECT_LT(relative(sums, one->sums()[0]), 1e-6) << step;
    for (Learner* learner : {left.get(), right.get()}) learner->sums()[0].copy_(sums);
    for (Learner* learner : {one.get(), left.get(), right.get()})
      learner->finish_step(values, taken());
    EXPECT_EQ(number(one->sums()[0].abs().max()), 0) << "sums are cleared";
    for (const char* buffer : {"embed", "cluster_size", "embed_avg"}) {
      EXPECT_LT(relative(buffer_of(*left, buffer), buffer_of(*one, buffer)), 1e-6) << buffer;
      EXPECT_TRUE(same_bits(buffer_of(*left, buffer), buffer_of(*right, buffer))) << buffer;
    }
    const auto whole_gradients = gradients_of(*one);
    for (const auto& [tensor, gradient] : gradients_of(*left)) {
      const at::Tensor both = gradient + gradients_of(*right).at(tensor);
      EXPECT_LT(relative(both, whole_gradients.at(tensor)), 1e-6) << tensor;
    }
  }
}

TEST(DvaeLearner, LossesAreScaledForTheBackwardPassAlone) {
  DvaeLearner plain(made_dvae(), {}), scaled(made_dvae(), {});
  clear_gradients(plain);
  clear_gradients(scaled);
  const Batch batch = dvae_batch("clip", {16, 8}, 16, 24);
  const at::Tensor loss = plain.add_gradients(0, batch, step_values(1));
  EXPECT_TRUE(same_bits(scaled.add_gradients(0, batch, step_values(1, 8)), loss));
  const auto once = gradients_of(plain);
  for (const auto& [name, gradient] : gradients_of(scaled))
    EXPECT_LT(relative(gradient, once.at(name) * 8), 1e-6) << name;
}

TEST(DvaeLearner, MultipliesInBfloat16AndKeepsWeightsInFloat32) {
  DvaeLearner exact(made_dvae(), {}), half(made_dvae(), {.compute = at::kBFloat16});
  const Batch batch = dvae_batch("clip", {16, 8}, 16, 24);
  clear_gradients(exact);
  clear_gradients(half);
  const at::Tensor truth = exact.add_gradients(0, batch, step_values(1));
  const at::Tensor found = half.add_gradients(0, batch, step_values(1));
  EXPECT_FALSE(same_bits(truth, found));
  EXPECT_NEAR(number(found[1]), number(truth[1]), 2e-2 * number(truth[1]));
  for (const auto& [name, gradient] : gradients_of(half)) {
    EXPECT_EQ(gradient.scalar_type(), at::kFloat) << name;
    EXPECT_GT(number(gradient.abs().max()), 0) << name;
  }
}

TEST(DvaeLearner, MeasuresAddUpOverBatches) {
  DvaeLearner learner(made_dvae(), {});
  const int64_t whole = 24 + 8;
  const Measured both = learner.validate(dvae_batch("clip", {24, 8}, 24, whole));
  const Measured first = learner.validate(dvae_batch("clip", {24}, 24, whole));
  const Measured second = learner.validate(dvae_batch("clip", {8}, 8, whole, 1));
  EXPECT_LT(relative(both.sums, first.sums + second.sums), 1e-5);
  EXPECT_LT(largest_difference(both.counts, first.counts + second.counts), 1e-6);
  clear_gradients(learner);
  const at::Tensor terms =
      learner.add_gradients(0, dvae_batch("clip", {24, 8}, 24, whole), step_values(1));
  EXPECT_LT(largest_difference((both.sums / both.counts).slice(0, 0, 3), terms), 1e-5);
}

TEST(DvaeLearner, MelDistanceIsInDecibels) {
  Dvae dvae = made_dvae();
  dvae.encoder.mel_stats = values("stats", {80}, 0.5, 2);
  DvaeLearner learner(dvae, {});
  const Batch batch = dvae_batch("clip", {16, 12}, 20, 28);
  const at::Tensor mels =
      learner.reconstruct(batch.fields[dvae_mels], batch.fields[dvae_mel_lengths]);
  double sum = 0;
  for (int64_t row = 0; row < 2; ++row) {
    const int64_t frames = row == 0 ? 16 : 12;
    const at::Tensor lack = (mels[row] - batch.fields[dvae_mels][row]).slice(1, 0, frames);
    sum += number(lack.abs().mean()) * frames * 10 / std::log(10.0);
  }
  const Measured found = learner.validate(batch);
  EXPECT_NEAR(number(found.sums[3] / found.counts[3]), sum / 28, 1e-3);
  EXPECT_EQ(number(mels[1].slice(1, 12).abs().max()), 0) << "beyond the clip";
}

// A captured step can neither read numbers back nor have shapes that depend on them.
TEST(DvaeLearner, NeverAsksTheDeviceForANumber) {
  LogicalDevice& cpu = DeviceRegistry::get().cpu();
  DvaeLearner learner(made_dvae(), {});
  clear_gradients(learner);
  const Batch batch = dvae_batch("clip", {16, 8}, 16, 24);
  const StepValues now = step_values(1);
  count_operations(true);
  cpu.operations().reset();
  {
    const DeviceScope scope(cpu);
    learner.add_gradients(0, batch, now);
    learner.finish_step(now, taken());
    learner.validate(batch);
  }
  const auto seen = cpu.operations().by_name();
  count_operations(false);
  EXPECT_TRUE(seen.contains("aten::index_put_"));
  for (const char* name :
       {"aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::equal",
        "aten::is_nonzero", "aten::masked_select", "aten::_unique2"})
    EXPECT_FALSE(seen.contains(name)) << name;
}

TEST(DvaeLearner, TakesABatchOfNothing) {
  DvaeLearner learner(made_dvae(), {});
  clear_gradients(learner);
  for (const auto& [rows, frames] : {std::pair{0, 16}, std::pair{2, 0}}) {
    const Batch batch{.fields = {at::empty({rows, 80, frames}), at::zeros({rows}, at::kLong),
                                 at::ones({rows, 1})}};
    EXPECT_EQ(number(learner.add_gradients(0, batch, step_values(1)).abs().max()), 0);
    EXPECT_EQ(number(learner.validate(batch).counts.abs().max()), 0);
  }
}

}  // namespace tandem::tests
