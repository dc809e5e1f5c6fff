#include "train/stages/counted_tensor.h"

#include <ATen/ATen.h>

#include "util/counted_random.h"

namespace tandem {
namespace {

constexpr int64_t as_signed(uint64_t bits) { return static_cast<int64_t>(bits); }

// A shift to the right that brings in zeros; ATen's keeps the sign.
at::Tensor shifted(const at::Tensor& x, int bits) {
  return at::bitwise_and(at::bitwise_right_shift(x, bits), as_signed(~uint64_t{0} >> bits));
}

}  // namespace

at::Tensor mix_bits(const at::Tensor& words) {
  at::Tensor x = words + as_signed(0x9e3779b97f4a7c15ULL);
  x = at::bitwise_xor(x, shifted(x, 30)) * as_signed(0xbf58476d1ce4e5b9ULL);
  x = at::bitwise_xor(x, shifted(x, 27)) * as_signed(0x94d049bb133111ebULL);
  return at::bitwise_xor(x, shifted(x, 31));
}

at::Tensor counted_draw(uint64_t seed, std::string_view purpose, const at::Tensor& id,
                        const at::Tensor& count) {
  const int64_t key = as_signed(mix_bits(mix_bits(seed) ^ hash_text(purpose)));
  return mix_bits(at::bitwise_xor(mix_bits(at::bitwise_xor(id, key)), count));
}

at::Tensor as_units(const at::Tensor& words) {
  return (shifted(words, 41).to(at::kFloat) + 0.5) * 0x1p-23;
}

at::Tensor counted_units(uint64_t seed, std::string_view purpose, const at::Tensor& id,
                         const at::Tensor& count) {
  return as_units(counted_draw(seed, purpose, id, count));
}

at::Tensor row_identity(const at::Tensor& values, const at::Tensor& lengths) {
  const at::Tensor place = at::arange(values.size(1), values.options()).unsqueeze(0);
  const at::Tensor beyond = place >= lengths.unsqueeze(1);
  // Sums of numbers that wrap do not depend on their order.
  const at::Tensor parts = mix_bits(mix_bits(place) + values).masked_fill(beyond, 0);
  return mix_bits(parts.sum(1) + lengths);
}

}  // namespace tandem
