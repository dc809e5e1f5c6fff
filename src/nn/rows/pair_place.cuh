// Where results of a product of rows go.
#pragma once

#include "nn/rows/row_math.cuh"

namespace tandem {

// Where a pair of neighbouring results goes, and what is added to it. Looked up before the results
// are there, so that the way to memory and back is not waited for at the end.
struct PairPlace {
  int row = 0, column = 0;
  bool real = false;
  float2 bias = {0, 0};  // known from the start
  int place = -1, position = 0;
  float2 before = {0, 0};  // of RowOutput::add

  __device__ void find(const RowProduct& call, int at_row, int at_column) {
    row = at_row, column = at_column;
    real = row < call.rows && column < call.columns;
    if (!real || !call.bias) return;
    bias.x = __ldg(call.bias + column);
    if (column + 1 < call.columns) bias.y = __ldg(call.bias + column + 1);
  }
  // What the kernels before have written.
  __device__ void read(const RowProduct& call) {
    if (!real) return;
    if (call.output == RowOutput::query_key_value) {
      place = call.places.place[row];
      position = call.places.position[row];
    } else if (call.output == RowOutput::add) {
      const float* out = call.out + static_cast<int64_t>(row) * call.columns + column;
      before.x = out[0];
      if (column + 1 < call.columns) before.y = out[1];
    }
  }
  template <class H>
  __device__ void put(const RowProduct& call, float2 y) const {
    if (!real) return;
    y.x += bias.x, y.y += bias.y;
    switch (call.output) {
      case RowOutput::store:
      case RowOutput::add: {
        float* out = call.out + static_cast<int64_t>(row) * call.columns + column;
        out[0] = before.x + y.x;
        if (column + 1 < call.columns) out[1] = before.y + y.y;
        break;
      }
      case RowOutput::gelu_tanh:
        *reinterpret_cast<uint32_t*>(static_cast<H*>(call.packed_out) +
                                     packed_index(row, column, call.packed_out_inner)) =
            half_pair<H>(gelu_tanh(y.x), gelu_tanh(y.y));
        break;
      case RowOutput::gelu_erf:
        *reinterpret_cast<uint32_t*>(static_cast<H*>(call.packed_out) +
                                     packed_index(row, column, call.packed_out_inner)) =
            half_pair<H>(gelu_erf(y.x), gelu_erf(y.y));
        break;
      case RowOutput::query_key_value:
        if (place >= 0) put_attention<H>(call, y);
        break;
    }
  }

 private:
  template <class H>
  __device__ void put_attention(const RowProduct& call, float2 y) const {
    const KeyValues& cache = call.cache;
    const int width = cache.heads * cache.head_width, pad = head_pad(cache.head_width);
    const int which = column / width, head = column % width / cache.head_width;
    const int within = column % cache.head_width;
    if (which == 0) {
      const float scale = rsqrtf(static_cast<float>(cache.head_width));
      *reinterpret_cast<float2*>(call.out + (static_cast<int64_t>(row) * cache.heads + head) * pad +
                                 within) = {y.x * scale, y.y * scale};
    } else {
      H* cached = static_cast<H*>(which == 1 ? cache.keys : cache.values);
      const int64_t at =
          (static_cast<int64_t>(place) * cache.heads + head) * cache.positions + position;
      *reinterpret_cast<uint32_t*>(cached + at * pad + within) = half_pair<H>(y.x, y.y);
    }
  }
};

}  // namespace tandem
