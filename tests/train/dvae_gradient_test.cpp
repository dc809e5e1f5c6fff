// Gradients of the DVAE's training by finite differences, in float64 and with padding.
#include <gtest/gtest.h>

#include "nn/finite_differences.h"
#include "train/dvae_making.h"

namespace tandem::tests {
namespace {

Dvae double_dvae() {
  Dvae dvae = made_dvae({.mels = 6, .hidden = 4, .width = 3, .codes = 9, .blocks = 1});
  dvae.visit("", [](const std::string&, at::Tensor& tensor) { tensor = tensor.to(at::kDouble); });
  return dvae;
}

// What the straight-through estimator is the gradient of: the codes, and what they add to the
// encoder's vectors, are those of the weights at hand.
struct Surrogate {
  at::Tensor scaled, lengths, chosen, offset;
  double whole, commitment;

  at::Tensor loss(const Dvae& dvae) const {
    const DvaeMasks masks = dvae_masks(dvae, lengths, scaled.size(2), at::kDouble);
    const at::Tensor vectors = encode_ragged(dvae, scaled, masks, at::kDouble);
    const at::Tensor real = masks.back().transpose(1, 2);
    const at::Tensor mels = decode_ragged(dvae, vectors + offset, masks, at::kDouble);
    return ((mels - scaled).square() * masks.front()).sum() / (whole * 6) +
           commitment * ((chosen - vectors).square() * real).sum() / (whole / 4 * 3);
  }
};

}  // namespace

TEST(DvaeGradients, AreThoseOfFiniteDifferences) {
  Dvae dvae = double_dvae();
  Batch batch = dvae_batch("clip", {12, 4, 8}, 16, 30, 0, 6);
  batch.fields[dvae_mels] = batch.fields[dvae_mels].to(at::kDouble);
  Surrogate truth{.scaled = batch.fields[dvae_mels],
                  .lengths = batch.fields[dvae_mel_lengths],
                  .whole = 30,
                  .commitment = 0.7};
  DvaeLearner learner(double_dvae(), {.commitment = 0.7, .compute = at::kDouble});
  clear_gradients(learner);
  learner.add_gradients(0, batch, step_values(1));
  const auto found = gradients_of(learner);

  const at::NoGradGuard no_grad;
  const DvaeMasks masks = dvae_masks(dvae, truth.lengths, 16, at::kDouble);
  const at::Tensor vectors = encode_ragged(dvae, truth.scaled, masks, at::kDouble);
  truth.chosen = at::embedding(dvae.encoder.codebook.t(), dvae.encoder.nearest(vectors));
  truth.offset = truth.chosen - vectors;
  int64_t checked = 0;
  dvae.visit("", [&](const std::string& name, at::Tensor& tensor) {
    if (name.starts_with("codebook")) return;
    const at::Tensor gradient = found.at(name).contiguous();
    for (int64_t i = 0; i < tensor.numel(); i += std::max<int64_t>(1, tensor.numel() / 5)) {
      const double measured = slope_at(
          tensor, i, [&] { return truth.loss(dvae); }, 1e-6);
      EXPECT_NEAR(gradient.const_data_ptr<double>()[i], measured, 1e-7) << name << " " << i;
      ++checked;
    }
  });
  EXPECT_GT(checked, 80);
}

}  // namespace tandem::tests
