// The arithmetic of one number, the same on the CPU and a GPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "nn/float_bits.h"

namespace tandem {

struct AdamWNumbers {
  float learning_rate, correction1, correction2_root, factor;
  float beta1, beta2, epsilon, weight_decay, average_decay;
};

struct AdamWCell {
  float weight, mean, square;
};

TANDEM_CELL AdamWCell adamw_cell(AdamWCell cell, float gradient, bool decays,
                                 const AdamWNumbers& n) {
  const float g = gradient * n.factor;
  if (decays) cell.weight -= n.learning_rate * n.weight_decay * cell.weight;
  cell.mean = n.beta1 * cell.mean + (1 - n.beta1) * g;
  cell.square = n.beta2 * cell.square + (1 - n.beta2) * g * g;
  const float root = sqrtf(cell.square) / n.correction2_root + n.epsilon;
  cell.weight -= n.learning_rate / n.correction1 * cell.mean / root;
  return cell;
}

// The upper half is rounded to nearest, so the lower one is signed.
TANDEM_CELL float join_halves(uint16_t high, int16_t low) {
  return from_bits((static_cast<uint32_t>(high) << 16) +
                   static_cast<uint32_t>(static_cast<int32_t>(low)));
}
TANDEM_CELL uint16_t high_half(float value) {
  return static_cast<uint16_t>((to_bits(value) + 0x8000u) >> 16);
}
TANDEM_CELL int16_t low_half(float value, uint16_t high) {
  return static_cast<int16_t>(to_bits(value) - (static_cast<uint32_t>(high) << 16));
}

}  // namespace tandem
