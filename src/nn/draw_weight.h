// How a code is drawn from scores so that host and device draw the very same one from the same
// float32 scores: every operation here is exact or rounded as IEEE says, weights are whole numbers,
// and sums of whole numbers do not depend on their order.
//
//   1. score = uncond + (cond - uncond) * guidance, three roundings; score / temperature
//   2. top-k: scores below the k-th largest go (equal ones stay)
//   3. weight = draw_weight(score - largest), a number from 0 to 2^31
//   4. top-p: a code stays while those of strictly larger score weigh less than top_p times all
//      that top-k left (equal ones stay together; the largest always stays), in double
//   5. mark = draw_mark(bits, weight of all that stay); the code drawn is the first, in the order
//      of their numbers, at which the weights added up exceed the mark
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "nn/checksum_words.h"

namespace tandem {

TANDEM_HOST_DEVICE inline float guided_score(float cond, float uncond, float guidance) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(uncond, __fmul_rn(__fsub_rn(cond, uncond), guidance));
#else
  const float moved = (cond - uncond) * guidance;
  return uncond + moved;
#endif
}

// 2^31 * e^below, cut to a whole number; `below` is at most 0. Right to 2e-7 of itself or one.
TANDEM_HOST_DEVICE inline uint32_t draw_weight(float below) {
  if (!(below > -22.f)) return 0;
  const float power = rintf(below * 1.44269504f);
  // log2(e) in two parts, so that the rest is right to its last bit.
  const float rest = fmaf(below, 1.92596299e-8f, fmaf(below, 1.44269502f, -power));
  float value = 1.54035304e-4f;  // 2^rest for |rest| <= 0.5
  value = fmaf(value, rest, 1.33335581e-3f);
  value = fmaf(value, rest, 9.61812911e-3f);
  value = fmaf(value, rest, 5.55041087e-2f);
  value = fmaf(value, rest, 2.40226507e-1f);
  value = fmaf(value, rest, 6.93147181e-1f);
  value = fmaf(value, rest, 1.f);
  const uint32_t bits = static_cast<uint32_t>(127 + 31 + static_cast<int>(power)) << 23;
  float scale = 0;
  memcpy(&scale, &bits, sizeof scale);
  return static_cast<uint32_t>(value * scale);
}

// A whole number in [0, total) from 64 random bits.
TANDEM_HOST_DEVICE inline uint64_t draw_mark(uint64_t bits, uint64_t total) {
#ifdef __CUDA_ARCH__
  return __umul64hi(bits, total);
#else
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * total) >> 64);
#endif
}

}  // namespace tandem
