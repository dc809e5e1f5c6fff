// Gradients of XttsGpt::learn by finite differences.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "models/xtts_narrow.h"
#include "nn/finite_differences.h"

namespace tandem::tests {
namespace {

// All is in float64 but the losses, sums of about 80 over float32 logits: good to 1e-5, which is
// 2e-3 by the step, of gradients from 1.6 to 200 long. Slopes bend by 1e-3 at most over it.
constexpr SlopeLimits losses_in_single{.step = 3e-3, .share = 2e-3, .noise = 4e-3};

// A whole row, one with padding and a slice that is not learned, and one of nothing.
struct Learning {
  XttsGpt gpt = narrow_gpt();
  XttsGpt::LearnBatch batch{
      .text = whole_numbers("text", {3, 9}, 30) + 1,
      .text_lengths = at::tensor({9, 5, 0}, at::kLong),
      .codes = whole_numbers("codes", {3, 11}, 32),
      .code_lengths = at::tensor({11, 8, 0}, at::kLong),
      .unlearned = at::tensor({0, 0, 2, 6, 0, 0}, at::kLong).view({3, 2}),
      .conditioning = double_values("conditioning", {3, 5, 40}).requires_grad_(true)};
  CountedDropout dropout;

  Learning() {
    at::set_num_threads(1);  // more only wait for each other over tensors this small
    gpt.visit("", [](const std::string&, at::Tensor& tensor) {
      tensor = tensor.to(at::kDouble).requires_grad_(true);
    });
  }
  XttsGpt::Learned learned() const { return gpt.learn(batch, dropout); }

  // Of the latents and of every weight, but those with one of these names, which have no part.
  void expect_gradients(const LossFunction& loss, const std::vector<std::string>& without = {}) {
    batch.conditioning.mutable_grad() = at::Tensor();
    gpt.visit("", [](const std::string&, at::Tensor& t) { t.mutable_grad() = at::Tensor(); });
    loss().backward();
    const at::Tensor latents = batch.conditioning.grad();
    expect_gradient("conditioning", batch.conditioning, latents, loss, losses_in_single);
    EXPECT_EQ(number(latents[2].abs().max()), 0) << "a row of nothing teaches nothing";
    gpt.visit("", [&](const std::string& name, at::Tensor& tensor) {
      for (const std::string& part : without) {
        if (!name.starts_with(part)) continue;
        EXPECT_TRUE(!tensor.grad().defined() || number(tensor.grad().abs().max()) == 0) << name;
        return;
      }
      expect_gradient(name, tensor, tensor.grad(), loss, losses_in_single);
    });
  }
};

}  // namespace

TEST(XttsGptGradient, OfTheTextLoss) {
  Learning it;
  it.expect_gradients([&] { return it.learned().text_loss; }, {"mel_"});
}

TEST(XttsGptGradient, OfTheAudioLoss) {
  Learning it;
  it.expect_gradients([&] { return it.learned().audio_loss; }, {"text_head"});
}

TEST(XttsGptGradient, OfTheRecallLoss) {
  Learning it;
  it.batch.recalls = true;
  it.batch.reads_stop = true;
  it.expect_gradients([&] { return it.learned().recall_loss; }, {"text_head", "mel_head"});
}

TEST(XttsGptGradient, OfAllLossesUnderDropoutComputedAgainOrNot) {
  Learning it;
  it.batch.recalls = true;
  const LossFunction loss = [&] {
    const XttsGpt::Learned found = it.learned();
    return found.text_loss + found.audio_loss * 0.5 + found.recall_loss * 2;
  };
  const double without = number(loss());
  it.dropout = {.share = 0.3,
                .seed = 3,
                .step = at::full({}, 7, at::kLong),
                .rows = at::tensor({11, 12, 13}, at::kLong)};
  EXPECT_GT(std::abs(number(loss()) - without), 1);
  for (const bool recompute : {false, true}) {
    it.batch.recompute = recompute;
    it.expect_gradients(loss);
  }
}

}  // namespace tandem::tests
