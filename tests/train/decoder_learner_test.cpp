#include "train/stages/decoder_learner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/xtts/voice.h"
#include "nn/tensors.h"
#include "train/decoder_making.h"

namespace tandem::tests {
namespace {

const std::vector<MadeClip> four_clips{{12, 5, "a"}, {3, 6, "b"}, {7, 4, "c"}, {5, 6, "d"}};

// Both phases without an update between them: gradients of a step, and its terms.
struct Step {
  at::Tensor terms;
  std::map<std::string, at::Tensor> gradients;
};

at::Tensor both_phases(DecoderLearner& learner, const Batch& batch, const StepValues& values) {
  const at::Tensor first = learner.add_gradients(0, batch, values);
  return first + learner.add_gradients(1, batch, values);
}

Step step_of(const std::vector<Batch>& batches, const DecoderLearnerOptions& options,
             int64_t step = 5) {
  DecoderLearner learner = narrow_decoder(options);
  want_gradients(learner);
  Step out;
  for (const Batch& batch : batches) {
    const at::Tensor terms = both_phases(learner, batch, decoder_step(step));
    out.terms = out.terms.defined() ? out.terms + terms : terms;
  }
  out.gradients = decoder_gradients(learner);
  return out;
}

// Relative to the gradients of a phase together.
void expect_same(const Step& a, const Step& b, double most = 1e-5) {
  EXPECT_LT(number(((a.terms - b.terms).abs() / (1 + a.terms.abs())).max()), most);
  for (const char* prefix : {"discriminators.", "hifigan"}) {
    double apart = 0, size = 0;
    for (const auto& [name, gradient] : a.gradients) {
      if (!name.starts_with(prefix)) continue;
      apart += number((gradient - b.gradients.at(name)).square().sum());
      size += number(gradient.square().sum());
    }
    EXPECT_GT(size, 0);
    EXPECT_LT(std::sqrt(apart / size), most) << prefix;
  }
}

double norm_of(const Step& step, const std::string& prefix) {
  double sum = 0;
  for (const auto& [name, gradient] : step.gradients)
    if (name.starts_with(prefix)) sum += number(gradient.square().sum());
  return std::sqrt(sum);
}

// Plain Adam, as the loop drives the phases.
class PlainAdam {
 public:
  explicit PlainAdam(Learner& learner, double rate) : learner_(learner), rate_(rate) {}
  void update(size_t index) {
    const at::NoGradGuard no_grad;
    Phase phase = learner_.phases()[index];
    auto& state = states_[index];
    state.resize(phase.tensors.size());
    const double count = ++counts_[index];
    for (size_t i = 0; i < state.size(); ++i) {
      at::Tensor& weight = *phase.tensors[i].tensor;
      at::Tensor gradient = weight.grad();
      auto& [mean, square] = state[i];
      if (!mean.defined()) mean = at::zeros_like(weight), square = at::zeros_like(weight);
      mean.lerp_(gradient, 1 - phase.beta1);
      square.lerp_(gradient.square(), 1 - phase.beta2);
      const double a = 1 - std::pow(phase.beta1, count), b = 1 - std::pow(phase.beta2, count);
      weight.sub_(mean / a / ((square / b).sqrt() + 1e-8), rate_);
      gradient.zero_();
    }
  }

 private:
  Learner& learner_;
  double rate_;
  std::map<size_t, std::vector<std::pair<at::Tensor, at::Tensor>>> states_;
  std::map<size_t, int> counts_;
};

}  // namespace

TEST(DecoderLearner, TrainsDiscriminatorsThenTheGenerator) {
  DecoderLearner learner = narrow_decoder({.segment_codes = 2});
  const std::vector<Phase> phases = learner.phases();
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].name, "discriminator");
  EXPECT_EQ(phases[1].name, "generator");
  EXPECT_EQ(phases[0].tensors.size(), 3u * (2 * 6 + 2 * 8));
  std::map<std::string, bool> decays;
  for (const TrainedTensor& tensor : phases[1].tensors) decays[tensor.name] = tensor.decays;
  const std::string prefix = "hifigan_decoder.waveform_decoder.";
  EXPECT_TRUE(decays.at(prefix + "conv_pre.weight"));
  EXPECT_TRUE(decays.at(prefix + "ups.2.parametrizations.weight.original1"));
  EXPECT_FALSE(decays.at(prefix + "ups.2.parametrizations.weight.original0"));
  EXPECT_FALSE(decays.at(prefix + "resblocks.11.convs2.2.bias"));
  EXPECT_EQ(learner.terms().front(), "loss");
  EXPECT_EQ(learner.measures().front(), "mel_distance");
}

// What the generator is judged by must not learn from it: neither weights nor biases, which are no
// copies in float32.
TEST(DecoderLearner, TheGeneratorsLossTeachesItAlone) {
  for (const bool by_products : {false, true}) {
    DecoderLearner learner = narrow_decoder({.by_products = by_products});
    want_gradients(learner);
    const Batch batch = made_decoder_batch(four_clips, 6);
    learner.add_gradients(0, batch, decoder_step(1));
    const auto before = decoder_gradients(learner);
    learner.add_gradients(1, batch, decoder_step(1));
    const auto after = decoder_gradients(learner);
    for (const auto& [name, gradient] : after) {
      if (name.starts_with("discriminators.")) {
        EXPECT_TRUE(same_bits(gradient, before.at(name))) << name;
      } else {
        EXPECT_EQ(number(before.at(name).abs().max()), 0) << name;
      }
    }
  }
}

TEST(DecoderLearner, TermsAreOfTheirPhaseAndAddUp) {
  const DecoderLearnerOptions options{.segment_codes = 2};
  DecoderLearner learner = narrow_decoder(options);
  want_gradients(learner);
  const Batch batch = made_decoder_batch(four_clips, 6);
  const at::Tensor first = learner.add_gradients(0, batch, decoder_step(1));
  const Step whole = step_of({batch}, options, 1);
  ASSERT_EQ(first.sizes(), (Shape{6}));
  EXPECT_EQ(number(first.narrow(0, 0, 5).abs().sum()), 0);
  EXPECT_GT(number(first[5]), 0.5);
  const auto term = [&](int64_t i) { return number(whole.terms[i]); };
  EXPECT_NEAR(term(0), 45 * term(1) + 2 * term(2) + term(3) + term(4), 1e-3);
  for (int64_t i = 0; i < 6; ++i) EXPECT_GT(term(i), 0) << i;
}

TEST(DecoderLearner, HearsSpectraToo) {
  const DecoderLearnerOptions options{.segment_codes = 2, .spectral_weight = 3};
  DecoderLearner learner = narrow_decoder(options);
  want_gradients(learner);
  // Empty rows have nothing apart from silence, whose root has no slope.
  const Batch batch = made_decoder_batch({{5, 6, "a"}, {0, 0, ""}}, 6);
  const at::Tensor first = learner.add_gradients(0, batch, decoder_step(1));
  const at::Tensor terms = first + learner.add_gradients(1, batch, decoder_step(1));
  const auto term = [&](int64_t i) { return number(terms[i]); };
  ASSERT_EQ(terms.numel(), 7);
  EXPECT_EQ(learner.terms().back(), "spectral");
  EXPECT_GT(term(6), 0.1);
  EXPECT_NEAR(term(0), 45 * term(1) + 2 * term(2) + term(3) + term(4) + 3 * term(6), 1e-3);
  for (const auto& [name, gradient] : decoder_gradients(learner))
    EXPECT_TRUE(at::isfinite(gradient).all().item<bool>()) << name;
}

TEST(DecoderLearner, HalvesOfABatchSumToTheWhole) {
  const DecoderLearnerOptions options{.segment_codes = 2, .own_codes_share = 0.5};
  const Step whole = step_of({made_decoder_batch(four_clips, 6)}, options);
  const Step halves =
      step_of({made_decoder_batch({four_clips[0]}, 6, 4),
               made_decoder_batch({four_clips[1], four_clips[2], four_clips[3]}, 6, 4)},
              options);
  expect_same(whole, halves);
}

TEST(DecoderLearner, EmptyRowsAddNothing) {
  const DecoderLearnerOptions options{.segment_codes = 2};
  std::vector<MadeClip> filled = four_clips;
  filled.push_back({0, 0, "none"});
  const Batch batch = made_decoder_batch(filled, 6);
  EXPECT_EQ(batch.rows, 4);
  const Step with = step_of({batch}, options);
  for (const auto& [name, gradient] : with.gradients)
    EXPECT_TRUE(std::isfinite(number(gradient.sum()))) << name;
  expect_same(step_of({made_decoder_batch(four_clips, 6)}, options), with);
}

// Worked on in parts, phase 1 finds nothing kept and makes the sound again.
TEST(DecoderLearner, WhatIsKeptIsWhatWouldBeMadeAgain) {
  const DecoderLearnerOptions options{.segment_codes = 2, .own_codes_share = 0.5};
  const Batch first = made_decoder_batch({four_clips[0], four_clips[1]}, 6, 4);
  const Batch second = made_decoder_batch({four_clips[2], four_clips[3]}, 6, 4);
  DecoderLearner learner = narrow_decoder(options);
  want_gradients(learner);
  Step parts;
  parts.terms = learner.add_gradients(0, first, decoder_step(5)) +
                learner.add_gradients(0, second, decoder_step(5)) +
                learner.add_gradients(1, first, decoder_step(5)) +
                learner.add_gradients(1, second, decoder_step(5));
  parts.gradients = decoder_gradients(learner);
  expect_same(step_of({made_decoder_batch(four_clips, 6)}, options), parts);
}

TEST(DecoderLearner, OnlyTheMelLossTrainsBeforeTheDiscriminators) {
  const Batch batch = made_decoder_batch(four_clips, 6);
  const DecoderLearnerOptions late{.segment_codes = 2, .discriminator_start = 6};
  const Step before = step_of({batch}, late, 5), from = step_of({batch}, late, 6);
  const Step mel = step_of(
      {batch},
      {.segment_codes = 2, .feature_weight = 0, .adversarial_weight = 0, .speaker_weight = 0}, 5);
  EXPECT_EQ(norm_of(before, "discriminators."), 0);
  EXPECT_GT(norm_of(from, "discriminators."), 0.01);
  EXPECT_NEAR(number(before.terms[0]), 45 * number(before.terms[1]), 1e-3);
  EXPECT_NEAR(norm_of(before, "hifigan"), norm_of(mel, "hifigan"), 1e-4 * norm_of(mel, "hifigan"));
  EXPECT_GT(number(from.terms[0]), 45 * number(from.terms[1]) + 0.5);
  // What does not count is not computed, and its captured pass is another.
  EXPECT_EQ(number(before.terms.narrow(0, 2, 4).abs().sum()), 0);
  DecoderLearner learner = narrow_decoder(late);
  EXPECT_EQ(learner.pass_of(batch, decoder_step(4)), learner.pass_of(batch, decoder_step(5)));
  EXPECT_NE(learner.pass_of(batch, decoder_step(5)), learner.pass_of(batch, decoder_step(6)));
}

TEST(DecoderLearner, TheSpeakerLossIsOptional) {
  const Batch batch = made_decoder_batch(four_clips, 6);
  const Step without = step_of({batch}, {.segment_codes = 2, .speaker_weight = 0});
  const Step with = step_of({batch}, {.segment_codes = 2, .speaker_weight = 100});
  EXPECT_EQ(number(without.terms[4]), 0);
  EXPECT_GT(number(with.terms[4]), 0);
  EXPECT_GT(std::abs(norm_of(with, "hifigan") - norm_of(without, "hifigan")), 1e-3);
}

TEST(DecoderLearner, LossesAreScaledForTheBackwardPassOnly) {
  const Batch batch = made_decoder_batch({four_clips[0]}, 6);
  const auto scaled = [&](double scale) {
    DecoderLearner learner = narrow_decoder({.segment_codes = 2});
    want_gradients(learner);
    StepValues values = decoder_step(2);
    values.scale = at::scalar_tensor(scale);
    Step out{.terms = both_phases(learner, batch, values), .gradients = {}};
    out.gradients = decoder_gradients(learner);
    return out;
  };
  Step one = scaled(1), eight = scaled(8);
  for (auto& [name, gradient] : eight.gradients) gradient.div_(8);
  expect_same(one, eight);
}

TEST(DecoderLearner, ValidatesClipsAndCountsThem) {
  DecoderLearner learner = narrow_decoder({.segment_codes = 2});
  const Measured whole = learner.validate(made_decoder_batch(four_clips, 6));
  const Measured a = learner.validate(made_decoder_batch({four_clips[0], {0, 0, "none"}}, 6));
  ASSERT_EQ(whole.sums.sizes(), (Shape{4}));
  EXPECT_EQ(number(whole.counts[0]), 4);
  EXPECT_EQ(number(a.counts[3]), 1);
  at::Tensor sum = a.sums;
  for (size_t i = 1; i < 4; ++i)
    sum = sum + learner.validate(made_decoder_batch({four_clips[i]}, 6)).sums;
  // Alone, a clip's last frames count that its batch mates' padding would reach into: about the
  // same, not the same.
  EXPECT_NEAR(number(sum[0] / whole.sums[0]), 1, 0.1);
  const double similarity = number(whole.sums[3] / whole.counts[3]);
  EXPECT_TRUE(similarity >= -1 && similarity <= 1);
}

// Products in bfloat16, losses in float32: the same losses up to its rounding.
TEST(DecoderLearner, ComputesInBfloat16) {
  const Batch batch = made_decoder_batch({four_clips[0]}, 6);
  const Step exact = step_of({batch}, {.segment_codes = 2, .own_codes_share = 0});
  const Step rounded =
      step_of({batch}, {.compute = at::kBFloat16, .segment_codes = 2, .own_codes_share = 0});
  EXPECT_EQ(rounded.terms.scalar_type(), at::kFloat);
  EXPECT_LT(number(((exact.terms - rounded.terms).abs() / (0.1 + exact.terms.abs())).max()), 0.1);
  EXPECT_GT(largest_difference(exact.terms, rounded.terms), 1e-5);
}

TEST(DecoderLearner, LearnsAClipOfTheDemo) {
  MadeClip clip{5, 16, "demo"};
  Batch batch = made_decoder_batch({clip}, 16);
  const at::Tensor wave =
      load_reference(TANDEM_SOURCE_DIR "/assets/demo/wavs/agent-alreadyon.flac", 24000, 0);
  const int64_t length = 16 * 1114;
  batch.fields[decoder_waves][0].narrow(0, 0, length).copy_(wave.narrow(0, 2400, length));
  batch.fields[decoder_wave_lengths][0] = length;
  Xtts xtts = narrow_xtts();
  XttsConfig wider = narrow_config();
  wider.vocoder_width = 32;
  xtts.vocoder = Vocoder::make(wider, 1);
  DecoderLearner learner(xtts, narrow_judges(), at::kCPU,
                         {.segment_codes = 4, .own_codes_share = 0});
  want_gradients(learner);
  PlainAdam adam(learner, 1e-2);
  const auto distance = [&] { return number(learner.validate(batch).sums[0]); };
  const double before = distance();
  for (int64_t step = 1; step <= 12; ++step) {
    for (const size_t phase : {0, 1}) {
      learner.add_gradients(phase, batch, decoder_step(step));
      adam.update(phase);
    }
  }
  const double after = distance();
  EXPECT_LT(after, 0.7 * before) << before;
}

}  // namespace tandem::tests
