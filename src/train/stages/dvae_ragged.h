// The DVAE's convolutions over clips of different length in one batch, with gradients. What lies
// beyond a clip's end is zero before every convolution, as it is for the clip alone: a clip's
// vectors, mels and gradients do not depend on its company.
#pragma once

#include <ATen/core/TensorBody.h>

#include <vector>

#include "models/xtts/dvae.h"

namespace tandem {

// 1 where a clip is, 0 beyond, [B, 1, frames >> i] at place i: frames, then halved by each strided
// convolution.
using DvaeMasks = std::vector<at::Tensor>;
DvaeMasks dvae_masks(const Dvae& dvae, const at::Tensor& lengths, int64_t frames,
                     at::ScalarType type);

// Convolutions multiply in `compute`; weights are cast for each use and keep their own type, in
// which the results come too.
// [B, mels, F], divided by mel_stats -> [B, T, width]; anything beyond a clip's end.
at::Tensor encode_ragged(const Dvae& dvae, const at::Tensor& scaled_mels, const DvaeMasks& masks,
                         at::ScalarType compute);
// [B, T, width] -> [B, mels, F], divided by mel_stats.
at::Tensor decode_ragged(const Dvae& dvae, const at::Tensor& vectors, const DvaeMasks& masks,
                         at::ScalarType compute);

}  // namespace tandem
