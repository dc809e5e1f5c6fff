#include "models/musicgen/delay_pattern.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace tandem {

bool DelayPattern::applies() const { return columns >= 2 * (codebooks / channels) - 1; }

int64_t DelayPattern::delay(int64_t codebook) const { return applies() ? codebook / channels : 0; }

int64_t DelayPattern::frames() const {
  return applies() ? columns - codebooks / channels : columns - 1;
}

bool DelayPattern::kept(int64_t codebook, int64_t column) const {
  const int64_t frame = column - 1 - delay(codebook);
  return frame >= 0 && frame < frames();
}

at::Tensor DelayPattern::forced(const at::Tensor& prompt_codes) const {
  const int64_t length = std::min(prompt_codes.size(-1), std::max<int64_t>(frames(), 0));
  std::vector<int64_t> shape = prompt_codes.sizes().vec();
  shape.back() = columns;
  at::Tensor tokens = at::full(shape, -1, prompt_codes.options().dtype(at::kLong));
  for (int64_t k = 0; k < codebooks; ++k) {
    const at::Tensor row = tokens.select(-2, k);
    for (int64_t column = 0; column < columns; ++column)
      if (!kept(k, column)) row.select(-1, column).fill_(pad_token);
    row.narrow(-1, 1 + delay(k), length).copy_(prompt_codes.select(-2, k).narrow(-1, 0, length));
  }
  return tokens;
}

at::Tensor DelayPattern::codes(const at::Tensor& tokens) const {
  std::vector<at::Tensor> rows;
  for (int64_t k = 0; k < codebooks; ++k)
    rows.push_back(tokens.select(-2, k).narrow(-1, 1 + delay(k), frames()));
  return at::stack(rows, -2);
}

}  // namespace tandem
