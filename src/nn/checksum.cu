#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cub/block/block_reduce.cuh>

#include "nn/checksum_words.h"

namespace tandem {
namespace {

constexpr int threads = 256;

// Reads each byte once: limited by memory bandwidth. `data` comes from an allocator that aligns to
// 256 bytes, but a tensor may be a view, so words are read bytewise when the start is not aligned.
__global__ void checksum_kernel(const unsigned char* data, int64_t bytes, unsigned long long* sum) {
  const int64_t words = bytes / 4;
  const bool aligned = reinterpret_cast<uintptr_t>(data) % 4 == 0;
  uint64_t mine = 0;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
       i += stride) {
    uint32_t word;
    if (aligned) {
      word = reinterpret_cast<const uint32_t*>(data)[i];
    } else {
      word = data[4 * i] | data[4 * i + 1] << 8 | data[4 * i + 2] << 16 |
             static_cast<uint32_t>(data[4 * i + 3]) << 24;
    }
    mine += mixed_word(static_cast<uint64_t>(i), word);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0 && bytes % 4 != 0) {
    uint32_t word = 0;
    for (int64_t b = 0; b < bytes % 4; ++b)
      word |= static_cast<uint32_t>(data[4 * words + b]) << (8 * b);
    mine += mixed_word(static_cast<uint64_t>(words), word);
  }
  using Reduce = cub::BlockReduce<unsigned long long, threads>;
  __shared__ typename Reduce::TempStorage storage;
  const unsigned long long block = Reduce(storage).Sum(mine);
  if (threadIdx.x == 0) atomicAdd(sum, block);
}

}  // namespace

void checksum_on_device(const void* data, int64_t bytes, void* sum) {
  const int64_t blocks = std::clamp<int64_t>(bytes / (threads * 16), 1, 1056);
  checksum_kernel<<<static_cast<unsigned>(blocks), threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      static_cast<const unsigned char*>(data), bytes, static_cast<unsigned long long*>(sum));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
