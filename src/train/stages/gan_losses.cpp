#include "train/stages/gan_losses.h"

#include <ATen/ATen.h>

#include "nn/map_distance.h"
#include "train/stages/mel_distance.h"

namespace tandem {
namespace {

// Sums are float32 at least.
at::ScalarType wide(const at::Tensor& values) {
  return at::promote_types(values.scalar_type(), at::kFloat);
}

// `values` shaped as the map's: mean over columns and channels, then over the valid places.
at::Tensor row_mean(const at::Tensor& values, const Judgement::Map& map, const at::Tensor& valid) {
  const at::Tensor places =
      values.mean(1, false, wide(values)).view({valid.size(0), -1, values.size(2)}).mean(1);
  return mean_of_valid(places, valid, map.samples_a_place);
}

at::Tensor from_target(const Judgement::Map& scores, double target, const at::Tensor& valid) {
  return row_mean((scores.values.to(wide(scores.values)) - target).square(), scores, valid);
}

}  // namespace

at::Tensor discriminator_loss(const Judgement& real, const Judgement& generated,
                              const at::Tensor& valid) {
  at::Tensor sum;
  for (size_t d = 0; d < real.maps.size(); ++d) {
    const at::Tensor loss = from_target(real.maps[d].back(), 1, valid) +
                            from_target(generated.maps[d].back(), 0, valid);
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

at::Tensor adversarial_loss(const Judgement& generated, const at::Tensor& valid) {
  at::Tensor sum;
  for (const auto& maps : generated.maps) {
    const at::Tensor loss = from_target(maps.back(), 1, valid);
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

at::Tensor feature_loss(const Judgement& real, const Judgement& generated,
                        const at::Tensor& valid) {
  std::vector<at::Tensor> losses;
  for (size_t d = 0; d < real.maps.size(); ++d) {
    for (size_t i = 0; i < real.maps[d].size(); ++i) {
      const Judgement::Map &ours = generated.maps[d][i], &theirs = real.maps[d][i];
      losses.push_back(map_distance(theirs.values, ours.values, valid, ours.samples_a_place));
    }
  }
  return at::stack(losses).sum(0);
}

at::Tensor cosine_distance(const at::Tensor& a, const at::Tensor& b) {
  return 1 - at::cosine_similarity(a, b, 1);
}

}  // namespace tandem
