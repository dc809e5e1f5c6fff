// Products of many rows on Hopper. The sum is cut as in row_product.cu: each of eight warps takes
// every eighth block of 32 of the inner dimension, and their sums are added in order. Here rows and
// weights come to shared memory by bulk copies, some blocks ahead of the products, so that two
// blocks of threads fit on a multiprocessor.
#include <algorithm>

#include "nn/conv/hopper_products.cuh"
#include "nn/rows/launch.cuh"
#include "nn/rows/pair_place.cuh"

namespace tandem {
namespace {

constexpr int warps = 8, threads = 32 * warps;
constexpr int row_tiles = 4, column_tiles = 4, slots = 2;  // of 16 rows, of 8 columns; of a warp
constexpr int height = 16 * row_tiles, width = 8 * column_tiles;
constexpr int row_bytes = 1024, column_bytes = 512;  // of a tile in a block of 32
constexpr int block_bytes = row_tiles * row_bytes + column_tiles * column_bytes;

// A warp's ring of blocks. Lanes 0 .. 3 bring a tile of rows each, the next four one of columns.
struct BlockRing {
  uint32_t ring, full;  // the slots, and a barrier each
  const unsigned char* from = nullptr;
  int64_t stride = 0;
  uint32_t to = 0;
  int bytes = 0;  // 0: a lane that brings nothing

  __device__ BlockRing(const RowProduct& call, const unsigned char* shared,
                       const uint64_t* barriers)
      : ring(shared_address(shared)), full(shared_address(barriers)) {
    const int lane = threadIdx.x % 32;
    if (lane == 0) {
      for (int i = 0; i < slots; ++i) init_barrier(full + 8 * i, 1);
      show_barriers();
    }
    if (lane < row_tiles) {
      const int last = (call.rows + row_block - 1) / row_block - 1;
      const int64_t tile = min(static_cast<int>(blockIdx.y) * row_tiles + lane, last);
      from = static_cast<const unsigned char*>(call.packed_rows) + tile * (call.inner * 32);
      to = lane * row_bytes;
      stride = bytes = row_bytes;
    } else if (lane < row_tiles + column_tiles) {
      const int last = (call.columns + 7) / 8 - 1, mine = lane - row_tiles;
      const int64_t tile = min(static_cast<int>(blockIdx.x) * column_tiles + mine, last);
      from = static_cast<const unsigned char*>(call.weight) + tile * (call.inner * 16);
      to = row_tiles * row_bytes + mine * column_bytes;
      stride = bytes = column_bytes;
    }
    __syncwarp();
  }
  __device__ void expect(int slot) const {
    if (threadIdx.x % 32 == 0) expect_bytes(full + 8 * slot, block_bytes);
    __syncwarp();
  }
  __device__ void bring(int block, int slot) const {
    if (bytes > 0)
      bring_bytes(ring + slot * block_bytes + to, from + block * stride, bytes, full + 8 * slot);
  }
};

template <class H>
__global__ void __launch_bounds__(threads, 2) hopper_rows(const RowProduct call) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ __align__(8) uint64_t barriers[warps][slots];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int blocks = call.inner / inner_block;
  const unsigned char* mine = shared + warp * slots * block_bytes;
  const BlockRing ring(call, mine, barriers[warp]);
  const auto begin = [&](bool brings) {
    for (int i = 0; i < slots && warp + warps * i < blocks; ++i)
      if (brings) ring.bring(warp + warps * i, i);
  };
  for (int i = 0; i < slots && warp + warps * i < blocks; ++i) ring.expect(i);
  begin(lane >= row_tiles);  // the weights, whoever made the rows
  release_successor();
  await_predecessor();
  begin(lane < row_tiles);
  __syncwarp();

  float sums[row_tiles][column_tiles][4] = {};
  int slot = 0, parity = 0;
  for (int block = warp; block < blocks; block += warps) {
    await_phase(ring.full + 8 * slot, parity);
    const auto* near = reinterpret_cast<const uint4*>(mine + slot * block_bytes) + lane;
    uint4 x[row_tiles][2], w[column_tiles];
#pragma unroll
    for (int m = 0; m < row_tiles; ++m) x[m][0] = near[m * 64], x[m][1] = near[m * 64 + 32];
#pragma unroll
    for (int n = 0; n < column_tiles; ++n) w[n] = near[row_tiles * 64 + n * 32];
    __syncwarp();
    if (const int later = block + warps * slots; later < blocks) {
      ring.expect(slot);
      ring.bring(later, slot);
    }
    if (++slot == slots) slot = 0, parity ^= 1;
#pragma unroll
    for (int m = 0; m < row_tiles; ++m)
#pragma unroll
      for (int n = 0; n < column_tiles; ++n) {
        multiply_tile<H>(sums[m][n], x[m][0], w[n].x, w[n].y);
        multiply_tile<H>(sums[m][n], x[m][1], w[n].z, w[n].w);
      }
  }
  __syncthreads();
  auto* partial = reinterpret_cast<float*>(shared);  // [warps, height, width]
#pragma unroll
  for (int m = 0; m < row_tiles; ++m)
#pragma unroll
    for (int n = 0; n < column_tiles; ++n) {
      float* tile = partial + (warp * height + m * 16 + lane / 4) * width + n * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(tile) = {sums[m][n][0], sums[m][n][1]};
      *reinterpret_cast<float2*>(tile + 8 * width) = {sums[m][n][2], sums[m][n][3]};
    }
  constexpr int pairs = height * width / 2 / threads;
  PairPlace places[pairs];
#pragma unroll
  for (int i = 0; i < pairs; ++i) {
    const int pair = static_cast<int>(threadIdx.x) + i * threads;
    places[i].find(call, blockIdx.y * height + pair / (width / 2),
                   blockIdx.x * width + pair % (width / 2) * 2);
    places[i].read(call);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < pairs; ++i) {
    float2 y = {0, 0};
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      const float2 part = *reinterpret_cast<const float2*>(partial + w * height * width +
                                                           2 * (threadIdx.x + i * threads));
      y.x += part.x;
      y.y += part.y;
    }
    places[i].template put<H>(call, y);
  }
}

}  // namespace

void launch_hopper_rows(const RowProduct& call, cudaStream_t stream) {
  constexpr int shared = warps * std::max(slots * block_bytes, height * width * 4);
  const auto kernel = call.half == RowHalf::fp16 ? hopper_rows<__half> : hopper_rows<__nv_bfloat16>;
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  const dim3 grid(static_cast<unsigned>((call.columns + width - 1) / width),
                  static_cast<unsigned>((call.rows + height - 1) / height));
  launch_in_turn(kernel, grid, dim3(threads), size_t{shared}, stream, call);
}

}  // namespace tandem
