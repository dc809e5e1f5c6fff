// The weights' way to shared memory: steps of 32 channels of one tap, in the order of the sum, some
// of them to a slot of a ring. Thread 0 of the block asks for them.
#pragma once

#include "nn/conv/hopper_products.cuh"

namespace tandem {

constexpr int step_channels = 32, slot_bytes = 16 * 1024, most_slots = 4;

template <int columns>
struct WeightRing {
  static constexpr int step_bytes = step_channels * columns * 2;
  static constexpr int slot_steps = slot_bytes / step_bytes;
  uint32_t ring, full, empty;  // the slots, and a barrier each
  int slots;
  int channel_steps, chunk_steps, taps;  // steps of all channels, and of a chunk of them
  int64_t stride;                        // from step to step, bytes
  // Of the block's first column; then those of another convolution, or null.
  const unsigned char *weight, *next_weight;
  int chunk = 0, tap = 0, block = 0, slot = 0, parity = 1;  // what is asked for next
  int read_slot = 0, read_parity = 0;

  // By thread 0, before others come here.
  __device__ void start(int readers) {
    for (int i = 0; i < slots; ++i) {
      init_barrier(full + 8 * i, 1);
      init_barrier(empty + 8 * i, readers);
    }
    show_barriers();
    for (int i = 0; i < slots; ++i) fetch();
  }
  // Waits until the slot has weights.
  __device__ uint32_t await_slot() const {
    await_phase(full + 8 * read_slot, read_parity);
    return ring + read_slot * slot_bytes;
  }
  __device__ void next_slot() {
    if (++read_slot == slots) read_slot = 0, read_parity ^= 1;
  }
  // By each warp, when its products of that slot are done.
  __device__ void release(int which) {
    if (threadIdx.x % 32 == 0) arrive_at(empty + 8 * which);
    if (threadIdx.x == 0) fetch();
  }

 private:
  // Asks for the next slot; for nothing where all have been asked for.
  __device__ void fetch() {
    if (chunk >= channel_steps) {
      if (!next_weight) return;
      weight = next_weight;
      next_weight = nullptr;
      chunk = 0;
    }
    const int blocks = min(chunk_steps, channel_steps - chunk);
    const int count = min(slot_steps, (taps - tap) * blocks - block);
    await_phase(empty + 8 * slot, parity);
    expect_bytes(full + 8 * slot, count * step_bytes);
    for (int i = 0; i < count; ++i) {
      const int64_t step = static_cast<int64_t>(tap) * channel_steps + chunk + block;
      bring_bytes(ring + slot * slot_bytes + i * step_bytes, weight + step * stride, step_bytes,
                  full + 8 * slot);
      if (++block == blocks) block = 0, ++tap;
    }
    if (tap == taps) tap = 0, chunk += chunk_steps;
    if (++slot == slots) slot = 0, parity ^= 1;
  }
};

}  // namespace tandem
