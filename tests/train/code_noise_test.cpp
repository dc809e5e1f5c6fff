#include "train/stages/code_noise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "models/xtts_narrow.h"
#include "nn/tensors.h"
#include "tandem/config.h"
#include "tandem/error.h"
#include "train/batches/gpt_batches.h"
#include "train/stages/gpt_learner.h"
#include "train/stages/gpt_stage.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

CodeNoise noise_of(double share, int64_t step = 5, uint64_t seed = 3) {
  return {.share = share, .kinds = 32, .seed = seed, .step = at::full({}, step, at::kLong)};
}

at::Tensor drawn_codes(const std::string& name, int64_t rows, int64_t count) {
  return whole_numbers(name, {rows, count}, 32);
}

// Rows of 9, 14 and 6 codes with texts, the second with a slice that is not learned, and an empty
// one.
Batch noise_batch() {
  Batch batch{.rows = 3, .whole_rows = 3};
  batch.fields.resize(gpt_fields);
  batch.fields[gpt_text] = whole_numbers("text", {4, 7}, 30) + 1;
  batch.fields[gpt_text_lengths] = at::tensor({5, 7, 3, 0}, at::kLong);
  batch.fields[gpt_codes] = drawn_codes("codes", 4, 14);
  batch.fields[gpt_code_lengths] = at::tensor({9, 14, 6, 0}, at::kLong);
  batch.fields[gpt_conditioning] = values("mels", {4, 80, 12});
  batch.fields[gpt_conditioning_lengths] = at::tensor({12, 9, 11, 0}, at::kLong);
  batch.fields[gpt_slice] = at::tensor({0, 0, 3, 8, 0, 0, 0, 0}, at::kLong).view({4, 2});
  batch.fields[gpt_whole] = at::tensor({18.0f, 36.0f}).repeat({4, 1});
  batch.sizes = {5 + 2 + 1 + 13, 7 + 2 + 1 + 18, 3 + 2 + 1 + 10};
  return batch;
}

Batch noise_rows(const Batch& whole, int64_t first, int64_t count) {
  Batch part{.rows = count, .whole_rows = whole.whole_rows};
  for (const at::Tensor& field : whole.fields)
    part.fields.push_back(field.narrow(0, first, count).clone());
  return part;
}

XttsGpt::LearnBatch learn_batch(const Batch& batch, const Conditioning& conditioning) {
  return {.text = batch.fields[gpt_text],
          .text_lengths = batch.fields[gpt_text_lengths],
          .codes = batch.fields[gpt_codes],
          .code_lengths = batch.fields[gpt_code_lengths],
          .unlearned = batch.fields[gpt_slice],
          .conditioning = conditioning(batch.fields[gpt_conditioning],
                                       batch.fields[gpt_conditioning_lengths].clamp_min(1)),
          .reads_stop = true};
}

// A learner on the CPU without dropout; its gradients by name.
struct NoisyLearner {
  explicit NoisyLearner(std::optional<double> share) {
    training.dropout = 0;
    training.code_noise = share;
    training.seed = 3;
    const DeviceScope scope(cpu());
    learner = std::make_unique<GptLearner>(narrow_gpt(), narrow_conditioning(40, 5), training,
                                           cpu(), GptLargest{});
    for (const Phase& phase : learner->phases()) {
      for (const TrainedTensor& trained : phase.tensors)
        *trained.tensor = trained.tensor->detach().clone().requires_grad_(true);
    }
  }
  static LogicalDevice& cpu() { return DeviceRegistry::get().cpu(); }
  // `replica`: its seed is another one than that of its neighbours.
  at::Tensor add(const Batch& batch, int64_t step, uint64_t replica = 0) {
    const DeviceScope scope(cpu());
    return learner->add_gradients(
        0, batch,
        {.step = at::full({}, step, at::kLong), .scale = at::ones({}), .seed = 100 + replica});
  }
  at::Tensor gradient(const std::string& name) {
    for (const Phase& phase : learner->phases())
      for (const TrainedTensor& trained : phase.tensors)
        if (trained.name == name) return trained.tensor->grad();
    ADD_FAILURE() << name;
    return {};
  }
  TrainingConfig training;
  std::unique_ptr<GptLearner> learner;
};

}  // namespace

TEST(CodeNoise, ReplacesAShareOfTheCodesByOtherCodes) {
  const at::Tensor codes = drawn_codes("many", 40, 500), lengths = at::full({40}, 500, at::kLong);
  for (const double share : {0.1, 0.5}) {
    const at::Tensor read = noisy_codes(codes, lengths, noise_of(share));
    EXPECT_NEAR(number(read.ne(codes).to(at::kFloat).mean()), share, 0.01);
    EXPECT_GE(number(read.min()), 0);
    EXPECT_LT(number(read.max()), 32) << "neither start (32) nor stop (33)";
    // All others are about equally likely, wherever they are.
    const at::Tensor ahead = at::remainder(read - codes, 32).masked_select(read.ne(codes));
    const at::Tensor counts = at::bincount(ahead, {}, 32).to(at::kFloat) / ahead.numel();
    EXPECT_EQ(number(counts[0]), 0);
    EXPECT_NEAR(number(counts.slice(0, 1).min()), 1.0 / 31, 0.012);
    EXPECT_NEAR(number(counts.slice(0, 1).max()), 1.0 / 31, 0.012);
  }
  EXPECT_TRUE(at::equal(noisy_codes(codes, lengths, noise_of(0)), codes));
}

TEST(CodeNoise, DependsOnSeedStepClipAndPlaceAlone) {
  const at::Tensor codes = drawn_codes("some", 6, 80),
                   lengths = at::tensor({80, 70, 60, 50, 40, 30}, at::kLong);
  const at::Tensor read = noisy_codes(codes, lengths, noise_of(0.3));
  EXPECT_TRUE(at::equal(read, noisy_codes(codes, lengths, noise_of(0.3))));
  // Other rows, another width, other rubbish beyond the end.
  const at::Tensor chosen = at::tensor({4, 1}, at::kLong);
  at::Tensor cut = codes.index_select(0, chosen).narrow(1, 0, 75).clone();
  cut[0].slice(0, 40).fill_(9);
  const at::Tensor moved = noisy_codes(cut, lengths.index_select(0, chosen), noise_of(0.3));
  EXPECT_TRUE(at::equal(moved[0].narrow(0, 0, 40), read[4].narrow(0, 0, 40)));
  EXPECT_TRUE(at::equal(moved[1].narrow(0, 0, 70), read[1].narrow(0, 0, 70)));
  const auto places = [&](const at::Tensor& other) { return other.ne(codes); };
  for (const CodeNoise& other : {noise_of(0.3, 6), noise_of(0.3, 5, 4)}) {
    const double both = number(
        places(noisy_codes(codes, lengths, other)).logical_and(places(read)).to(at::kFloat).mean());
    EXPECT_NEAR(both, 0.09, 0.04) << "independent of each other";
  }
  EXPECT_FALSE(at::equal(places(read)[0], places(read)[1]));
}

TEST(CodeNoise, LeavesTheTargetsAsTheyAre) {
  const Batch batch = noise_batch();
  XttsGpt gpt = narrow_gpt();
  gpt.visit("", [](const std::string&, at::Tensor& t) { t = t.clone().requires_grad_(true); });
  const XttsGpt::LearnBatch clean = learn_batch(batch, narrow_conditioning(40, 5));
  // Reading what is to be said is plain learning.
  const XttsGpt::Learned plain = gpt.learn(clean),
                         same = learn_reading(gpt, clean, clean.codes.clone());
  EXPECT_NEAR(number(same.audio_loss), number(plain.audio_loss), 1e-4);
  EXPECT_NEAR(number(same.text_loss), number(plain.text_loss), 1e-4);
  EXPECT_EQ(number(same.audio_count), number(plain.audio_count));

  // One code read wrongly: what stands before it is judged as if nothing had happened, and the
  // gradient goes to the embedding that was read.
  at::Tensor read = clean.codes.clone();
  const int64_t was = read[0][5].item<int64_t>();
  read[0][5] = (was + 7) % 32;
  XttsGpt::LearnBatch only = clean;
  only.code_lengths = at::tensor({9, 0, 0, 0}, at::kLong);
  only.unlearned = at::tensor({0, 6, 0, 0, 0, 0, 0, 0}, at::kLong).view({4, 2});
  const auto loss = [&](const XttsGpt::Learned& learned) { return number(learned.audio_loss); };
  EXPECT_GT(std::abs(loss(learn_reading(gpt, only, read)) - loss(gpt.learn(only))), 1e-3);
  only.unlearned = at::tensor({6, 99, 0, 0, 0, 0, 0, 0}, at::kLong).view({4, 2});
  EXPECT_NEAR(loss(learn_reading(gpt, only, read)), loss(gpt.learn(only)), 1e-4)
      << "the sixth target is the code that was recorded";

  only.unlearned = at::Tensor();
  const auto rows_moved = [&](const XttsGpt::Learned& learned) {
    return torch::autograd::grad({learned.audio_loss}, {gpt.audio_embedding})[0].abs().sum(1) > 0;
  };
  const at::Tensor moved = rows_moved(learn_reading(gpt, only, read));
  for (int64_t code = 0; code < 32; ++code) {
    const bool is_read = (read[0].narrow(0, 0, 9) == code).any().item<bool>();
    EXPECT_EQ(moved[code].item<bool>(), is_read) << code;
  }
}

TEST(CodeNoise, IsTheSameForAClipOnAnyReplicaAndNotInValidation) {
  const Batch batch = noise_batch();
  NoisyLearner whole(0.4), parts(0.4), clean(0.0), unset(std::nullopt);
  const at::Tensor terms = whole.add(batch, 2);
  const at::Tensor first = parts.add(noise_rows(batch, 0, 1), 2, 1),
                   second = parts.add(noise_rows(batch, 1, 3), 2, 2);
  EXPECT_LT(largest_difference(terms, first + second), 1e-5);
  for (const char* name : {"gpt.mel_embedding.weight", "gpt.gpt.h.1.attn.c_attn.weight"}) {
    const at::Tensor expected = whole.gradient(name);
    EXPECT_LT(largest_difference(expected, parts.gradient(name)),
              1e-4 * number(expected.abs().max()))
        << name;
  }
  const at::Tensor without = clean.add(batch, 2);
  EXPECT_GT(largest_difference(terms, without), 1e-3) << "else nothing was replaced";
  EXPECT_TRUE(same_bits(without, unset.add(batch, 2)));
  NoisyLearner again(0.4);
  EXPECT_TRUE(same_bits(terms, again.add(batch, 2))) << "as after a resume";
  NoisyLearner later(0.4);
  EXPECT_GT(largest_difference(terms, later.add(batch, 3)), 1e-4) << "others each step";

  const DeviceScope scope(NoisyLearner::cpu());
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(same_bits(whole.learner->validate(batch).sums, clean.learner->validate(batch).sums));
}

TEST(Recall, IsToldOfTheCodeThatWasReadByTheAudioEmbedding) {
  const Batch batch = noise_batch();
  const XttsGpt gpt = narrow_gpt();
  XttsGpt::LearnBatch clean = learn_batch(batch, narrow_conditioning(40, 5));
  EXPECT_FALSE(gpt.learn(clean).recall_loss.defined());
  clean.recalls = true;
  const at::Tensor read = noisy_codes(clean.codes, clean.code_lengths, noise_of(0.3));
  const XttsGpt::Learned learned = learn_reading(gpt, clean, read);
  double expected = 0;
  for (const auto& [row, length] : {std::pair{0, 9}, std::pair{1, 14}, std::pair{2, 6}}) {
    // Place i + 1 has read code i; slices that are not learned are recalled too.
    const at::Tensor seen = learned.audio_latents[row].narrow(0, 1, length);
    const at::Tensor chances = at::log_softmax(seen.matmul(gpt.audio_embedding.t()), 1);
    expected -= number(chances.gather(1, read[row].narrow(0, 0, length).unsqueeze(1)).sum());
  }
  EXPECT_NEAR(number(learned.recall_loss), expected, 1e-3 * expected);
}

TEST(Recall, IsATermOfTheLossWithItsWeight) {
  const Batch batch = noise_batch();
  NoisyLearner without(0.0), with(0.0), parts(0.0);
  with.training.recall_weight = parts.training.recall_weight = 0.5;
  EXPECT_EQ(without.learner->terms(), (std::vector<std::string>{"loss", "text_loss", "mel_loss"}));
  EXPECT_EQ(with.learner->terms().back(), "recall_loss");
  const at::Tensor plain = without.add(batch, 2), terms = with.add(batch, 2);
  ASSERT_EQ(terms.numel(), 4);
  EXPECT_GT(number(terms[3]), 0);
  EXPECT_NEAR(number(terms[0]), number(plain[0]) + 0.5 * number(terms[3]), 1e-5);
  EXPECT_LT(largest_difference(terms.narrow(0, 1, 2), plain.narrow(0, 1, 2)), 1e-6);
  EXPECT_GT(largest_difference(with.gradient("gpt.mel_embedding.weight"),
                               without.gradient("gpt.mel_embedding.weight")),
            1e-4);
  const at::Tensor added =
      parts.add(noise_rows(batch, 0, 1), 2, 1) + parts.add(noise_rows(batch, 1, 3), 2, 2);
  EXPECT_LT(largest_difference(terms, added), 1e-5) << "replicas add up";
}

TEST(Fp8Products, AreRefusedWhereTheyAreNotToBeHad) {
  TrainingConfig training;
  training.fp8_products = true;
  LogicalDevice& cpu = NoisyLearner::cpu();
  const DeviceScope scope(cpu);
  try {
    GptLearner(narrow_gpt(), narrow_conditioning(40, 5), training, cpu, GptLargest{});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_NE(std::string(error.what()).find("training.fp8_products=true is for a Hopper GPU"),
              std::string::npos)
        << error.what();
  }
}

TEST(CodeNoise, ComesWithAGptFromNothingUnlessToldOtherwise) {
  TrainingConfig training;
  EXPECT_EQ(code_noise_for(training, /*trained_before=*/false), 0.1);
  EXPECT_EQ(code_noise_for(training, /*trained_before=*/true), 0);
  EXPECT_TRUE(takes_other_clip(training));
  training.compat = "coqui";
  EXPECT_EQ(code_noise_for(training, false), 0);
  EXPECT_FALSE(takes_other_clip(training));
  training.code_noise = 0.2;
  EXPECT_EQ(code_noise_for(training, true), 0.2);
  training = {.conditioning_clip = "same"};
  EXPECT_FALSE(takes_other_clip(training));
}

TEST(CodeNoise, IsRefusedWhereItIsNoShare) {
  const auto refusal = [](const std::string& word) {
    return thrown_by([&] { Config::from_overrides({word}); }).sentence;
  };
  EXPECT_TRUE(contains(refusal("training.code_noise=1"),
                       "`training.code_noise` must be a number from 0 to 0.9, or null, not `1`"))
      << refusal("training.code_noise=1");
  EXPECT_TRUE(contains(refusal("training.code_noise=-0.1"), "not `-0.1`"));
  EXPECT_TRUE(contains(refusal("training.conditioning_clip=another"),
                       "`training.conditioning_clip` must be one of `other`, `same`, not "
                       "`another`"))
      << refusal("training.conditioning_clip=another");
  EXPECT_EQ(Config::from_overrides({"code_noise=0.25"}).training.code_noise, 0.25);
}

}  // namespace tandem::tests
