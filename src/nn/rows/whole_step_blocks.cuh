// What the blocks of whole_step.cu need to work side by side: words they hand to each other, and
// weights brought to shared memory ahead of their use.
#pragma once

#include <cstdint>

#include "nn/shared_memory.cuh"

namespace tandem::whole {

// Words go from block to block through memory that holds `nothing_yet` until they are written, so
// the word itself says that it is there: no counter to raise, no fence, one way to the cache and
// one back. No operation gives this pattern: numbers that are none come out as 7f ff ff ff.
constexpr uint32_t nothing_yet = 0xffffffffu;

__device__ inline void hand_over(uint32_t* place, uint32_t word) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(place), "r"(word) : "memory");
}
__device__ inline void hand_over(uint32_t* place, float2 pair) {
  asm volatile("st.relaxed.gpu.global.v2.f32 [%0], {%1, %2};" ::"l"(place), "f"(pair.x), "f"(pair.y)
               : "memory");
}
// The first `real` of some fours of words, where `place(i)` says. All are asked for before the
// first is looked at: one way to the cache and back for all of them.
template <int count, class Place>
__device__ inline void await_words(int real, uint4 (&words)[count], const Place& place) {
  for (uint32_t polls = 0;; ++polls) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (i < real)
        asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[i].x), "=r"(words[i].y), "=r"(words[i].z), "=r"(words[i].w)
                     : "l"(place(i))
                     : "memory");
    }
    bool all = true;
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (i < real)
        all = all && words[i].x != nothing_yet && words[i].y != nothing_yet &&
              words[i].z != nothing_yet && words[i].w != nothing_yet;
    if (all) return;
    if (polls > (1u << 27)) __trap();  // a minute: whoever should write it is not there
  }
}

// How many blocks have handed over what others wait for. It is no proof that the words are there,
// only that asking for them is worth while: 128 blocks that ask for all of them over and over would
// hold up those that write.
struct Call {
  uint32_t raised,
      unused[31];  // one less than the number, as memory that holds `nothing_yet` has it

  // By the warp that has handed over, the block's first.
  __device__ void raise() {
    if (threadIdx.x >= 32) return;
    __syncwarp();
    if (threadIdx.x == 0)
      asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(&raised) : "memory");
  }
  // By all threads of the block.
  __device__ void await(uint32_t blocks) const {
    if (threadIdx.x == 0) {
      uint32_t seen = 0;
      for (uint32_t polls = 0;; ++polls) {
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&raised) : "memory");
        if (seen + 1 >= blocks) break;
        if (polls > (1u << 27)) __trap();
      }
    }
    __syncthreads();
  }
};

// The thread's number, asked for anew: addresses made from it are not kept in registers from layer
// to layer, where the attention needs them all.
__device__ inline int thread_now() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

__device__ inline void call_for_line(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// A piece of shared memory that is filled and used in turn. One thread fills it.
class Store {
 public:
  __device__ Store(void* memory, uint64_t* full)
      : memory_(shared_address(memory)), full_(shared_address(full)) {}

  __device__ void prepare() const {
#if __CUDA_ARCH__ >= 900
    init_barrier(full_, 1);
#endif
  }
  // All that was read of it has been read. Weights are read once a step: what blocks hand to each
  // other is to stay in the cache.
  __device__ void fill(const void* from, uint32_t bytes) const {
#if __CUDA_ARCH__ >= 900
    expect_bytes(full_, static_cast<int>(bytes));
    bring_bytes_once(memory_, from, static_cast<int>(bytes), full_);
#endif
  }
  // By all threads: it is full.
  __device__ void await() {
#if __CUDA_ARCH__ >= 900
    await_phase_in_a_loop(full_, turn_);
#endif
    turn_ ^= 1;
  }

 private:
  uint32_t memory_, full_, turn_ = 0;
};

}  // namespace tandem::whole
