#include "models/xtts/xtts_gpt.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include <set>

#include "models/xtts_narrow.h"
#include "nn/sample.h"
#include "nn/tensors.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

struct Batch {
  at::Tensor ids, lengths, codes, waves, conditioning;
};

Batch batch() {
  Batch made{whole_numbers("text", {2, 9}, 30) + 1, at::tensor({9, 5}, at::kLong),
             whole_numbers("codes", {2, 11}, 32),
             at::tensor({11 * 1024 - 700, 7 * 1024 + 1}, at::kLong), values("cond", {2, 32, 40})};
  made.ids.narrow(0, 1, 1).narrow(1, 5, 4).zero_();
  return made;
}

XttsGpt::TeacherForced forced(const XttsGpt& gpt, const Batch& in) {
  return gpt.teacher_forced(in.ids, in.lengths, in.codes, in.waves, in.conditioning);
}

}  // namespace

TEST(XttsGpt, ReadsItsSizesFromTheShapes) {
  const XttsGpt gpt = narrow_gpt();
  EXPECT_EQ(gpt.size.layers, 3);
  EXPECT_EQ(gpt.size.width, 40);
  EXPECT_EQ(gpt.size.text_tokens, 37);
  EXPECT_EQ(gpt.size.audio_tokens, 34);
  EXPECT_EQ(gpt.size.max_text_tokens, 20);
  EXPECT_EQ(gpt.size.max_audio_tokens, 40);
}

TEST(XttsGpt, TeacherForcingGivesCoquisLossesAndLogits) {
  auto expected = xtts_fixture("gpt");
  const auto found = forced(narrow_gpt(), batch());
  EXPECT_NEAR(number(found.loss_text), number(expected.at("loss_text")), 1e-4);
  EXPECT_NEAR(number(found.loss_audio), number(expected.at("loss_mel")), 1e-4);
  EXPECT_LT(largest_difference(found.text_logits, expected.at("text_logits")), 1e-4);
  EXPECT_LT(largest_difference(found.audio_logits, expected.at("mel_logits")), 1e-4);
}

TEST(XttsGpt, EachClipLearnsFourStopTokensBehindItsCodes) {
  const auto found = forced(narrow_gpt(), batch());
  for (const auto& [row, codes] : {std::pair{0, 11}, std::pair{1, 8}}) {
    const std::vector<int64_t> targets = numbers(found.audio_targets[row]);
    const std::vector<int64_t> given = numbers(batch().codes[row]);
    for (int64_t i = 0; i < static_cast<int64_t>(targets.size()); ++i) {
      const int64_t expected = i < codes ? given[static_cast<size_t>(i)] : i < codes + 4 ? 33 : -1;
      EXPECT_EQ(targets[static_cast<size_t>(i)], expected) << row << ", " << i;
    }
  }
}

TEST(XttsGpt, GradientsHaveCoquisNorms) {
  XttsGpt gpt = narrow_gpt();
  gpt.visit("", [](const std::string&, at::Tensor& tensor) { tensor.requires_grad_(true); });
  const auto found = forced(gpt, batch());
  (0.01 * found.loss_text + found.loss_audio).backward();
  size_t compared = 0;
  const auto expected = xtts_fixture("gpt");
  gpt.visit("", [&](const std::string& name, at::Tensor& tensor) {
    ASSERT_TRUE(tensor.grad().defined()) << name;
    const auto norm = expected.find("grad_norm/" + name);
    if (norm == expected.end()) return;
    const double theirs = number(norm->second);
    EXPECT_NEAR(number(tensor.grad().norm()), theirs, 1e-3 * theirs) << name;
    ++compared;
  });
  EXPECT_EQ(compared, 7u);
}

// With dropout, and with weights that are results themselves, as those of low-rank additions are.
TEST(XttsGpt, RecomputedLayersGiveTheSameGradientsAndKeepLess) {
  const Batch in = batch();
  const auto learned = [&](bool recompute) {
    XttsGpt gpt = narrow_gpt();
    gpt.visit("", [](const std::string&, at::Tensor& tensor) { tensor.requires_grad_(true); });
    XttsGpt used = gpt;
    used.blocks[1].qkv_weight = gpt.blocks[1].qkv_weight * 0.5;
    at::Tensor conditioning = in.conditioning.clone().requires_grad_(true);
    const XttsGpt::Learned found =
        used.learn({.text = in.ids,
                    .text_lengths = in.lengths,
                    .codes = in.codes,
                    .code_lengths = at::tensor({11, 8}, at::kLong),
                    .conditioning = conditioning,
                    .recompute = recompute},
                   {.share = 0.2, .seed = 3, .step = at::full({}, 7, at::kLong)});
    // What the passes hold on to: every tensor that is saved once, by where it is.
    std::set<const torch::autograd::Node*> nodes;
    std::vector<const torch::autograd::Node*> next = {found.audio_loss.grad_fn().get()};
    while (!next.empty()) {
      const torch::autograd::Node* node = next.back();
      next.pop_back();
      if (!node || !nodes.insert(node).second) continue;
      for (const auto& edge : node->next_edges()) next.push_back(edge.function.get());
    }
    (found.audio_loss + found.text_loss).backward();
    std::vector<at::Tensor> gradients = {conditioning.grad()};
    gpt.visit("", [&](const std::string& name, at::Tensor& tensor) {
      EXPECT_TRUE(tensor.grad().defined()) << name;
      gradients.push_back(tensor.grad());
    });
    return std::pair(gradients, nodes.size());
  };
  const auto [kept, many] = learned(false);
  const auto [again, few] = learned(true);
  ASSERT_EQ(kept.size(), again.size());
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(same_bits(kept[i], again[i])) << i;
  EXPECT_LT(2 * few, many) << "operations whose inputs are kept for the backward pass";
}

TEST(XttsGpt, WhatStandsBehindAClipsEndChangesNothing) {
  Batch one = batch(), other = batch();
  other.codes.narrow(0, 1, 1).narrow(1, 8, 3).fill_(3);
  const auto a = forced(narrow_gpt(), one), b = forced(narrow_gpt(), other);
  EXPECT_TRUE(same_bits(a.loss_audio, b.loss_audio));
}

TEST(XttsGpt, LatentsOfOnePassAreCoquis) {
  const Batch in = batch();
  const at::NoGradGuard no_grad;
  const at::Tensor found = narrow_gpt().latents(
      numbers(in.ids[0]), numbers(whole_numbers("spoken", {1, 13}, 32)), in.conditioning[0]);
  EXPECT_LT(largest_difference(found, xtts_fixture("gpt").at("latents")), 5e-5);
}

TEST(XttsGpt, StepsWithAPastEqualOnePass) {
  const at::NoGradGuard no_grad;
  const XttsGpt gpt = narrow_gpt();
  const Batch in = batch();
  const std::vector<int64_t> codes = numbers(whole_numbers("spoken", {1, 13}, 32));
  const at::Tensor whole = gpt.latents(numbers(in.ids[0]), codes, in.conditioning[0]);
  XttsGpt::Past past;
  at::Tensor hidden = gpt.hidden(gpt.prompt(numbers(in.ids[0]), in.conditioning[0]), past);
  std::vector<at::Tensor> steps{hidden.narrow(1, hidden.size(1) - 1, 1)};
  // Two codes at once, then one by one.
  const at::Tensor two = at::cat({gpt.code_input(codes[0], 1), gpt.code_input(codes[1], 2)}, 1);
  steps.push_back(gpt.hidden(two, past));
  for (size_t i = 2; i + 1 < codes.size(); ++i)
    steps.push_back(gpt.hidden(gpt.code_input(codes[i], static_cast<int64_t>(i) + 1), past));
  EXPECT_LT(largest_difference(at::cat(steps, 1), whole), 2e-5);
}

// The penalty counts the prompt's ids, 1 and the start token, as said.
TEST(XttsGpt, GreedyCodesAreThoseOfHuggingFacesGenerate) {
  const at::NoGradGuard no_grad;
  XttsGpt gpt = narrow_gpt();
  gpt.audio_head.bias[33] = -30;
  const Batch in = batch();
  for (const double penalty : {1.0, 5.0}) {
    const std::vector<int64_t> expected =
        numbers(xtts_fixture("gpt").at(penalty == 1 ? "greedy.1" : "greedy.5"));
    ASSERT_EQ(static_cast<int64_t>(expected.size()), gpt.size.max_new_codes());
    std::vector<bool> seen(34);
    seen[1] = seen[32] = true;
    std::vector<int64_t> codes;
    for (size_t step = 0; step < expected.size(); ++step) {
      codes.push_back(0);  // the code being looked for is not read
      const at::Tensor last = gpt.latents(numbers(in.ids[0]), codes, in.conditioning[0])[0][step];
      const at::Tensor logits = gpt.audio_head(last).contiguous();
      codes.back() = sample_code({logits.const_data_ptr<float>(), 34}, seen,
                                 {.repetition_penalty = penalty, .greedy = true}, 0);
      seen[static_cast<size_t>(codes.back())] = true;
    }
    EXPECT_EQ(codes, expected) << "penalty " << penalty;
  }
}

TEST(XttsGpt, RefusesMoreThanItHasPlacesFor) {
  const XttsGpt gpt = narrow_gpt();
  const at::Tensor conditioning = values("cond", {32, 40});
  const Thrown text = thrown_by([&] { gpt.prompt(std::vector<int64_t>(21, 3), conditioning); });
  EXPECT_EQ(text.kind, "data");
  EXPECT_EQ(text.sentence, "the text has 21 tokens; this model takes 20 at most");
  const Thrown id = thrown_by([&] { gpt.prompt({3, 37}, conditioning); });
  EXPECT_EQ(id.sentence, "text token 37 is none of the model's 37");
  const Thrown codes =
      thrown_by([&] { gpt.latents({3}, std::vector<int64_t>(44, 3), conditioning); });
  EXPECT_EQ(codes.sentence, "44 codes are more than the model's 43 positions");
  Batch in = batch();
  in.waves[1] = 40 * 1024;
  const Thrown forced_codes = thrown_by([&] { forced(gpt, in); });
  EXPECT_EQ(forced_codes.sentence, "a batch needs 45 positions of audio; this model has 43");
}

TEST(XttsGpt, NoCodesHaveNoLatents) {
  EXPECT_EQ(narrow_gpt().latents({3}, {}, values("cond", {32, 40})).sizes(),
            (at::IntArrayRef{1, 0, 40}));
}

}  // namespace tandem::tests
