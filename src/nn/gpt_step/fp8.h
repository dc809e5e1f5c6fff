// Matrices of 8-bit floats (E4M3) for GptStep's products, told in plain pointers. Each row has a
// scale of its own, chosen so that its largest value is the format's largest: nothing is remembered
// from step to step, so a resumed run computes the same bits. Three bits of mantissa are enough for
// the forward pass and for gradients that flow back; gradients of weights, which are sums over all
// places, are computed from bfloat16.
//
// cuBLASLt multiplies such rows by rows only (the inner dimension is contiguous on both sides), so
// a weight [in, out] is written twice: turned, a row an output, for the forward pass, and as it is,
// a row an input, for the gradient of its input. Both are made of one reading, when a layer's
// forward pass comes; the first is still in the cache when it is read, the second waits for the
// backward pass. (Made beside the layer before it, on a stream of their own, they cost a step more
// than they save.)
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "nn/gpt_step/gpt_kernels.h"

namespace tandem {

struct Fp8Rows {
  uint8_t* data = nullptr;  // [rows, columns]
  float* scales = nullptr;  // [rows]: value = scale * data
};

bool fp8_runs();  // on the current device: cuBLASLt has scales of rows for Hopper alone

constexpr int widest_fp8 = 1024;  // of the residual stream; four times that is the longest row

// Rows of several matrices, columns a multiple of 8, 4 * widest_fp8 at most.
struct Fp8Job {
  const bf16* in = nullptr;  // [rows, columns]
  Fp8Rows out;
  int rows = 0, columns = 0;
};
constexpr int most_fp8_jobs = 4;
struct Fp8Jobs {
  Fp8Job job[most_fp8_jobs];
  int count = 0;
};
void launch_fp8_rows(const Fp8Jobs& jobs, cudaStream_t stream);

// A weight, whose rows and columns are multiples of 128, in both forms; without data a form is not
// made.
struct Fp8Turn {
  const bf16* in = nullptr;  // [rows, columns]
  Fp8Rows turned, straight;  // [columns, rows], [rows, columns]
  int rows = 0, columns = 0;
};
struct Fp8Turns {
  Fp8Turn turn[most_fp8_jobs];
  int count = 0;
};
// `largest` [columns and rows of all weights together] is work space: zeros, or what the same
// weights left there.
void launch_fp8_weights(const Fp8Turns& turns, float* largest, cudaStream_t stream);

// out = gelu(in).
void launch_gelu_fp8(const bf16* in, const Fp8Rows& out, int places, int columns,
                     cudaStream_t stream);
// launch_gelu_backward whose gradient comes out in both forms; partial [gelu_fp8_parts, columns].
constexpr int gelu_fp8_parts = 264;
void launch_gelu_backward_fp8(const bf16* in, bf16* gradient, bf16* activated, const Fp8Rows& out,
                              float* partial, int places, int columns, cudaStream_t stream);

}  // namespace tandem
