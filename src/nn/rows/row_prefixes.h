// Keys and values of the first rows of prompts, kept for prompts that begin alike: a voice's
// latents stand before every text it speaks. Rows come out the same whatever stands beside or
// behind them, so what is copied is what would be computed, to the last bit.
//
// Everything is queued on the given stream; the GptRows must outlive it. One thread uses it.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>
#include <c10/cuda/CUDAStream.h>

#include <vector>

#include "nn/rows/gpt_rows.h"
#include "nn/rows/prefix_index.h"
#include "nn/rows/row_prefix.h"

namespace tandem {

class RowPrefixes {
 public:
  // Beginnings of `positions` rows each; memory for `room` of them is taken now.
  RowPrefixes(const GptRows& rows, int64_t positions, int64_t room);

  int64_t positions() const { return positions_; }
  // The slot of a prompt's beginning; -1: not kept. `prompt` [T, D] float32 on the CPU.
  int64_t find(const at::Tensor& prompt);

  // Writes what the slots hold to the places: both on the device, `copies` of them.
  void put(int64_t copies, const int32_t* slot, const int32_t* place, cudaStream_t stream) const;

  struct Computed {
    at::Tensor prompt;
    int place = 0;
  };
  // Keeps beginnings that `run` has computed at their places. The same one twice is kept once; of
  // more than there is room for, the first.
  void keep(const std::vector<Computed>& computed, c10::cuda::CUDAStream stream);

 private:
  std::span<const float> beginning(const at::Tensor& prompt) const;
  void copy(PrefixWay way, int64_t copies, const int32_t* slot, const int32_t* place,
            cudaStream_t stream) const;

  int64_t positions_, heads_, pad_, capacity_;
  PrefixIndex index_;
  at::Tensor caches_;  // [2 layers] addresses
  at::Tensor kept_;    // [room, 2 layers, H, positions, pad] half
};

}  // namespace tandem
#endif
