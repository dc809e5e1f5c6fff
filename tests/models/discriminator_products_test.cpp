// Discriminators whose convolutions are matrix products, against those of LibTorch.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/xtts/discriminators.h"
#include "models/xtts_values.h"
#include "nn/tensors.h"
#include "train/stages/gan_losses.h"

namespace tandem::tests {

TEST(DiscriminatorProducts, GiveTheSameMapsLossesAndGradients) {
  Discriminators judges = Discriminators::make({.width = 64, .periods = {2, 3}, .scales = 3}, 5);
  std::vector<at::Tensor> learned;
  judges.visit("", [&](const std::string&, at::Tensor& tensor) {
    tensor = tensor.detach().to(at::kDouble).requires_grad_(true);
    learned.push_back(tensor);
  });
  const at::Tensor real = values("real", {2, 701}, 0.5).to(at::kDouble);
  const at::Tensor fake = values("fake", {2, 701}, 0.5).to(at::kDouble).requires_grad_(true);
  const at::Tensor valid = at::tensor({int64_t{701}, int64_t{230}});
  learned.push_back(fake);
  std::vector<at::Tensor> gradients[2];
  at::Tensor losses[2];
  std::vector<at::Tensor> maps[2];
  for (const bool by_products : {false, true}) {
    const auto folded = judges.fold(at::kDouble);
    const Judgement a = judges.judge(real, folded, by_products),
                    b = judges.judge(fake, folded, by_products);
    const at::Tensor loss =
        (discriminator_loss(a, b, valid) + adversarial_loss(b, valid) + feature_loss(a, b, valid))
            .sum();
    losses[by_products] = loss.detach();
    for (const auto& of_one : b.maps)
      for (const auto& map : of_one) maps[by_products].push_back(map.values.detach());
    const auto found = torch::autograd::grad({loss}, learned);
    gradients[by_products].assign(found.begin(), found.end());
  }
  EXPECT_LT(largest_difference(losses[0], losses[1]), 1e-9);
  ASSERT_EQ(maps[0].size(), maps[1].size());
  for (size_t i = 0; i < maps[0].size(); ++i)
    EXPECT_LT(largest_difference(maps[0][i], maps[1][i]), 1e-11) << i;
  for (size_t i = 0; i < learned.size(); ++i)
    EXPECT_LT(largest_difference(gradients[0][i], gradients[1][i]), 1e-9) << i;
}

}  // namespace tandem::tests
