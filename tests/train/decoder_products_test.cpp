// The decoder's step with the discriminators' convolutions as products.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "nn/tensors.h"
#include "train/decoder_making.h"

namespace tandem::tests {

TEST(DecoderProducts, GiveTheGradientsOfConvolutions) {
  std::map<std::string, at::Tensor> gradients[2];
  at::Tensor terms[2];
  for (const bool by_products : {false, true}) {
    DecoderLearner learner = narrow_decoder({.segment_codes = 4, .by_products = by_products});
    want_gradients(learner);
    const Batch batch = made_decoder_batch({{5, 10, "a"}, {3, 7, "b"}}, 12);
    terms[by_products] = learner.add_gradients(0, batch, decoder_step(3)) +
                         learner.add_gradients(1, batch, decoder_step(3));
    gradients[by_products] = decoder_gradients(learner);
  }
  EXPECT_LT(largest_difference(terms[0], terms[1]), 1e-4);
  for (const auto& [name, gradient] : gradients[0]) {
    const double scale = number(gradient.abs().max());
    EXPECT_LT(largest_difference(gradient, gradients[1].at(name)), 2e-3 * scale + 1e-7) << name;
  }
}

}  // namespace tandem::tests
