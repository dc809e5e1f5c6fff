// One block a row.
#include "nn/rows/launch.cuh"
#include "nn/rows/row_math.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace {

template <class H, int quads>
__global__ void __launch_bounds__(norm_threads) row_norm(const RowNormCall call) {
  __shared__ float scratch[32];
  BlockRow<quads> scale, shift, scale2, shift2, values;
  scale.load(call.first.weight, call.width);
  shift.load(call.first.bias, call.width);
  if (call.second.weight) {
    scale2.load(call.second.weight, call.width);
    shift2.load(call.second.bias, call.width);
  }
  release_successor();
  await_predecessor();
  const int row = blockIdx.x;
  const int source = call.source_row ? call.source_row[row] : row;
  values.load(call.in + static_cast<int64_t>(source) * call.width, call.width);
  values.normalise(scale, shift, call.width, scratch);
  if (call.second.weight) values.normalise(scale2, shift2, call.width, scratch + 16);
  values.template pack<H>(static_cast<H*>(call.packed_out), row, call.inner);
  if (!call.latents || call.latent_place[row] < 0) return;
  float* latent = call.latents + (static_cast<int64_t>(call.latent_place[row]) * call.latent_steps +
                                  call.latent_step[row]) *
                                     call.width;
#pragma unroll
  for (int j = 0; j < quads; ++j) {
    const int i = 4 * threadIdx.x + 1024 * j;
    if (i < call.width) *reinterpret_cast<float4*>(latent + i) = values.value[j];
  }
}

}  // namespace

void launch_row_norm(const RowNormCall& call, cudaStream_t stream) {
  const WorkNote note("tandem::row_norm", 0, 6.0 * call.rows * call.width);
  const dim3 grid(call.rows);
  const auto launch = [&](auto kernel) {
    launch_in_turn<RowNormCall>(kernel, grid, dim3(norm_threads), 0, stream, call);
  };
  const bool wide = call.width > 1024, half = call.half == RowHalf::fp16;
  if (half) {
    wide ? launch(row_norm<__half, 2>) : launch(row_norm<__half, 1>);
  } else {
    wide ? launch(row_norm<__nv_bfloat16, 2>) : launch(row_norm<__nv_bfloat16, 1>);
  }
}

}  // namespace tandem
