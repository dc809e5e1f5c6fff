#include <c10/cuda/CUDAException.h>

#include "nn/rows/row_prefix.h"
#include "nn/work_note.h"

namespace tandem {
namespace {

constexpr int threads = 256, unroll = 4;

// A block copies one cache of one sequence. At a place the positions of a head stand behind each
// other, and the next head's `capacity` positions later; in a slot heads follow at once.
__global__ void __launch_bounds__(threads) row_prefix(const RowPrefix call) {
  const int copy = blockIdx.x, which = blockIdx.y;
  const int row = call.pad / 8;  // 16-byte pieces of one position
  const int pieces = call.positions * row, all = call.heads * pieces;
  const int64_t stride = static_cast<int64_t>(call.capacity) * row;
  uint4* place =
      reinterpret_cast<uint4*>(call.cache[which]) + call.place[copy] * call.heads * stride;
  uint4* slot = static_cast<uint4*>(call.kept) +
                (static_cast<int64_t>(call.slot[copy]) * call.caches + which) * all;
  for (int first = threadIdx.x; first < all; first += threads * unroll) {
    uint4 values[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const int i = first + u * threads;
      if (i >= all) continue;
      values[u] =
          call.way == PrefixWay::to_places ? slot[i] : place[i / pieces * stride + i % pieces];
    }
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const int i = first + u * threads;
      if (i >= all) continue;
      (call.way == PrefixWay::to_places ? place[i / pieces * stride + i % pieces] : slot[i]) =
          values[u];
    }
  }
}

}  // namespace

void launch_row_prefix(const RowPrefix& call, cudaStream_t stream) {
  const double bytes = 2.0 * call.copies * call.caches * call.heads * call.positions * call.pad;
  const WorkNote note("tandem::row_prefix", 0, 2 * bytes);
  // Not in turn (launch.cuh): it starts when all before it has ended, and what comes behind it
  // starts when it has ended.
  row_prefix<<<dim3(call.copies, call.caches), threads, 0, stream>>>(call);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
