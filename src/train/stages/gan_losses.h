// The losses of a least-squares GAN over sound, as HiFi-GAN adds them up: sums over the
// discriminators, each a mean over the places of a row that begin before `valid` [B] int64 samples.
// All give [B] float32. (coqui-tts divides by the number of discriminators and of maps: 8 and 54.)
#pragma once

#include <ATen/core/TensorBody.h>

#include "models/xtts/discriminators.h"

namespace tandem {

// Real sound is to score 1, generated sound 0.
at::Tensor discriminator_loss(const Judgement& real, const Judgement& generated,
                              const at::Tensor& valid);
// Generated sound is to score 1.
at::Tensor adversarial_loss(const Judgement& generated, const at::Tensor& valid);
// Mean absolute difference of all maps, scores included.
at::Tensor feature_loss(const Judgement& real, const Judgement& generated, const at::Tensor& valid);
// 1 - cosine of two rows: [B, D], [B, D] -> [B].
at::Tensor cosine_distance(const at::Tensor& a, const at::Tensor& b);

}  // namespace tandem
