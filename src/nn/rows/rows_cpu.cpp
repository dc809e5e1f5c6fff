#include "nn/rows/rows_cpu.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>

// A version for each of these processors, chosen when the program starts. The thread sanitizer is
// not yet up at that moment and would crash.
#ifdef __SANITIZE_THREAD__
#define FOR_EACH_PROCESSOR
#else
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#endif

namespace tandem {
namespace {

constexpr int64_t tile_rows = 4, tile_columns = 32;
typedef float Lanes __attribute__((vector_size(64)));  // 16 floats, as many registers as it takes
constexpr int64_t lanes = 16, tile_lanes = tile_columns / lanes;

// By reference: a vector of this size returned by value has another ABI in each clone below.
__attribute__((always_inline)) inline void load(Lanes& value, const float* from) {
  std::memcpy(&value, from, sizeof value);
}

// Up to 4 rows by 32 columns. The same sums in the same order for every row.
FOR_EACH_PROCESSOR void product_tile(const float* x, int64_t rows, int64_t inner,
                                     const float* weight, int64_t columns, const float* bias,
                                     float* out) {
  Lanes sums[tile_rows][tile_lanes];
  for (int64_t r = 0; r < tile_rows; ++r)
    for (int64_t c = 0; c < tile_lanes; ++c) sums[r][c] = Lanes{};
  const float* row[tile_rows];
  for (int64_t r = 0; r < tile_rows; ++r) row[r] = x + std::min(r, rows - 1) * inner;
  for (int64_t k = 0; k < inner; ++k) {
    for (int64_t c = 0; c < tile_lanes; ++c) {
      Lanes w;
      load(w, weight + k * columns + c * lanes);
      for (int64_t r = 0; r < tile_rows; ++r) sums[r][c] += w * row[r][k];
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < tile_lanes; ++c) {
      Lanes y;
      load(y, bias + c * lanes);
      y += sums[r][c];
      std::memcpy(out + r * columns + c * lanes, &y, sizeof y);
    }
  }
}

// What is left at the right edge, one column at a time.
FOR_EACH_PROCESSOR void product_column(const float* x, int64_t rows, int64_t inner,
                                       const float* weight, int64_t columns, float bias,
                                       float* out) {
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t k = 0; k < inner; ++k) sum += weight[k * columns] * x[r * inner + k];
    out[r * columns] = sum + bias;
  }
}

// softmax(q k) v over `count` positions.
void attend(const float* q, const float* keys, const float* values, int64_t count, int64_t width,
            std::vector<float>& scores, float* out) {
  scores.resize(static_cast<size_t>(count));
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  float largest = -INFINITY;
  for (int64_t p = 0; p < count; ++p) {
    float sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += q[i] * keys[p * width + i];
    scores[static_cast<size_t>(p)] = sum * scale;
    largest = std::max(largest, sum * scale);
  }
  float total = 0;
  std::fill(out, out + width, 0.0f);
  for (int64_t p = 0; p < count; ++p) {
    const float weight = std::exp(scores[static_cast<size_t>(p)] - largest);
    total += weight;
    for (int64_t i = 0; i < width; ++i) out[i] += weight * values[p * width + i];
  }
  for (int64_t i = 0; i < width; ++i) out[i] /= total;
}

}  // namespace

at::Tensor row_product_cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t rows = x.size(0), inner = x.size(1), columns = weight.size(1);
  at::Tensor y = at::empty({rows, columns}, x.options());
  const float* from = x.const_data_ptr<float>();
  const float* w = weight.const_data_ptr<float>();
  const float* b = bias.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  const int64_t tiles = (columns + tile_columns - 1) / tile_columns;
  const int64_t grain = std::max<int64_t>(1, 200'000 / (rows * inner * tile_columns + 1));
  at::parallel_for(0, tiles, grain, [&](int64_t first, int64_t last) {
    for (int64_t tile = first; tile < last; ++tile) {
      const int64_t column = tile * tile_columns;
      for (int64_t r = 0; r < rows; r += tile_rows) {
        const int64_t count = std::min(tile_rows, rows - r);
        if (column + tile_columns <= columns) {
          product_tile(from + r * inner, count, inner, w + column, columns, b + column,
                       to + r * columns + column);
          continue;
        }
        for (int64_t c = column; c < columns; ++c)
          product_column(from + r * inner, count, inner, w + c, columns, b[c],
                         to + r * columns + c);
      }
    }
  });
  return y;
}

at::Tensor row_attention_cpu(const at::Tensor& queries, const at::Tensor& keys,
                             const at::Tensor& values, const std::vector<int64_t>& places,
                             const std::vector<int64_t>& positions) {
  const int64_t rows = queries.size(0), heads = queries.size(1), width = queries.size(2);
  const int64_t capacity = keys.size(2);
  at::Tensor out = at::empty({rows, heads * width}, queries.options());
  const float* q = queries.const_data_ptr<float>();
  const float* k = keys.const_data_ptr<float>();
  const float* v = values.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  at::parallel_for(0, rows * heads, 8, [&](int64_t first, int64_t last) {
    std::vector<float> scores;
    for (int64_t i = first; i < last; ++i) {
      const auto row = static_cast<size_t>(i / heads);
      const int64_t sequence = (places[row] * heads + i % heads) * capacity * width;
      attend(q + i * width, k + sequence, v + sequence, positions[row] + 1, width, scores,
             to + i * width);
    }
  });
  return out;
}

}  // namespace tandem
