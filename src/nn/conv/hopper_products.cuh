// Hopper's products of halves by a warp group, both sides in shared memory without a swizzle: 8
// rows of 8 channels (16 bytes) stand together, so that a side may begin at any row.
#pragma once

#include <cstdint>

#include "nn/shared_memory.cuh"

namespace tandem {

// `along`: bytes from 8 channels to the next 8; `down`: from eight rows to the next eight.
__device__ inline uint64_t side(uint32_t address, int along, int down) {
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) |
         static_cast<uint64_t>(static_cast<uint32_t>(along) >> 4) << 16 |
         static_cast<uint64_t>(static_cast<uint32_t>(down) >> 4) << 32;
}

#define TANDEM_EIGHT(d, i)                                                                    \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])

// d[64, n] += a[64, 16] b[n, 16]^T. Of warp w, lane 4 g + t, value 4 j + e of d is row
// 16 w + g + 8 (e / 2), column 8 j + 2 t + e % 2.
__device__ inline void multiply_sides(float (&d)[16], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, 1, 1, 1, 0, 0;"
      : TANDEM_EIGHT(d, 0), TANDEM_EIGHT(d, 8)
      : "l"(a), "l"(b));
}
__device__ inline void multiply_sides(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
      "%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, 0;"
      : TANDEM_EIGHT(d, 0), TANDEM_EIGHT(d, 8), TANDEM_EIGHT(d, 16), TANDEM_EIGHT(d, 24)
      : "l"(a), "l"(b));
}
__device__ inline void multiply_sides(float (&d)[64], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
      "%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, 1, 1, 1, 0, 0;"
      : TANDEM_EIGHT(d, 0), TANDEM_EIGHT(d, 8), TANDEM_EIGHT(d, 16), TANDEM_EIGHT(d, 24),
        TANDEM_EIGHT(d, 32), TANDEM_EIGHT(d, 40), TANDEM_EIGHT(d, 48), TANDEM_EIGHT(d, 56)
      : "l"(a), "l"(b));
}

}  // namespace tandem
