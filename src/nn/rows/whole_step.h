// All layers of a step of few rows in one kernel. Launched one by one, the kernels of such a step
// mostly wait: each for the one before it, then for its own weights. Here 128 blocks stay from the
// first layer to the last, hand their results to each other word by word, and fetch the weights of
// the next layer into their shared memory meanwhile. The results are those of the kernels of
// row_kernels.h and music_kernels.h to the last bit.
//
// One row a place. For GPUs of compute capability 9.0 on which the blocks fit at once, and models
// of the one width below (XTTS v2, MusicGen small); whole_step_runs says.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "nn/rows/row_kernels.h"

namespace tandem {

struct WholeStepSize {
  static constexpr int width = 1024, heads = 16, inner = 4096, most_rows = 2;
};

// Of one layer; what a model does not have is null.
struct WholeStepLayer {
  const void *qkv = nullptr, *project = nullptr, *expand = nullptr, *contract = nullptr;  // packed
  const void *cross_query = nullptr, *cross_project = nullptr;
  const float *qkv_bias = nullptr, *project_bias = nullptr, *expand_bias = nullptr,
              *contract_bias = nullptr;
  RowNorm norm_self, norm_cross, norm_inner;
  void *keys = nullptr, *values = nullptr, *text_keys = nullptr, *text_values = nullptr;
};

struct WholeStep {
  RowHalf half = RowHalf::fp16;
  bool music = false;  // attention and gelu as MusicGen has them, else as XTTS
  int rows = 1;
  int reading = 0;  // rows, from the first, that read their caption
  int layers = 0;
  const WholeStepLayer* layer = nullptr;  // [layers] on the device
  int positions = 0, text_positions = 0;  // of the layers' keys and values
  float* x = nullptr;                     // [R, D]
  RowPlaces places;
  const int32_t* text_last = nullptr;  // [P]
  // Two sets of words handed over, used in turn: [2, layers, words of a layer], at first all bits
  // set; and whose turn it is, at first 0.
  uint32_t* words = nullptr;
  uint32_t* turn = nullptr;
  double positions_read = 0;  // of all rows and captions, where it is known, for traces
};

int64_t whole_step_words(int64_t layers);  // of both sets

// On the current device.
bool whole_step_runs(int rows, int64_t width, int64_t heads, int64_t inner);
void launch_whole_step(const WholeStep& call, cudaStream_t stream);

}  // namespace tandem
