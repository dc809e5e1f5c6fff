// A GPT-2 trunk with keys and values kept, computed by the row kernels on one GPU: embeddings of
// rows in, latents and logits out. Everything is queued on the given stream; after `reserve`
// nothing is allocated, so the calls may be captured.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>
#include <c10/cuda/CUDAStream.h>

#include <vector>

#include "nn/rows/few_rows.h"
#include "nn/rows/row_kernels.h"
#include "nn/rows/whole_step_layers.h"

namespace tandem {

// float32 on the CPU; product weights are [in, out].
struct GptRowsWeights {
  struct Norm {
    at::Tensor weight, bias;
  };
  struct Layer {
    at::Tensor norm1_weight, norm1_bias, qkv_weight, qkv_bias, project_weight, project_bias;
    at::Tensor norm2_weight, norm2_bias, expand_weight, expand_bias, contract_weight, contract_bias;
  };
  int64_t width = 0, heads = 1;
  std::vector<Layer> layers;
  Norm last_norm, final_norm;  // the second may be undefined
  at::Tensor head, head_bias;  // [D, codes], [codes]
};

class GptRows {
 public:
  // On the current CUDA device. `positions`: the longest sequence.
  GptRows(const GptRowsWeights& weights, RowHalf half, int64_t places, int64_t positions,
          const FewRows& few_rows = {});

  // Buffers for that many rows; they only grow, and growing moves them.
  void reserve(int64_t rows);
  const at::Tensor& x() const { return x_; }          // [R, D] inputs, then the residual stream
  const at::Tensor& place() const { return place_; }  // [R] int32, for callers that fill them
  const at::Tensor& position() const { return position_; }
  const at::Tensor& step() const { return step_; }
  const at::Tensor& drawn() const { return drawn_; }
  const at::Tensor& logits() const { return logits_; }  // [R, codes]
  size_t layers() const { return layers_.size(); }
  // Of all places: [P, H, C, head_pad] half.
  const at::Tensor& keys(size_t layer) const { return layers_[layer].keys; }
  const at::Tensor& values(size_t layer) const { return layers_[layer].values; }

  // All layers over the first `rows` rows of x. `one_row_a_place`: no row reads keys and values of
  // another row of this call, and launch_row_begin comes before it.
  void run(int64_t rows, const RowPlaces& places, bool one_row_a_place, cudaStream_t stream);
  bool runs_whole(int64_t rows) const;  // in one kernel, where every place has one row

  // Norms and head of some of the rows.
  struct Finish {
    int64_t rows = 0;
    const int32_t* source_row = nullptr;  // null: all, in order
    const int32_t* place = nullptr;       // for the latents
    const int32_t* step = nullptr;
  };
  void finish(const Finish& what, const at::Tensor& latents, cudaStream_t stream);

  int64_t weight_bytes() const;  // read in every step

 private:
  struct Product {
    at::Tensor packed, bias;
    int64_t inner = 0, columns = 0;
  };
  struct Layer {
    at::Tensor norm1_weight, norm1_bias, norm2_weight, norm2_bias;
    Product qkv, project, expand, contract;  // behind each other in memory
    at::Tensor keys, values;                 // [P, H, C, head_pad] half
  };
  Product pack(const at::Tensor& weight, const at::Tensor& bias) const;
  static void join_weights(Layer& layer);
  RowProduct product(const Product& weights, int64_t rows) const;
  std::vector<WholeStepLayer> whole_step_layers() const;
  void norm_rows(int64_t rows, const at::Tensor& weight, const at::Tensor& bias,
                 cudaStream_t stream);

  RowHalf half_;
  FewRows few_rows_;
  int64_t width_, heads_, positions_, inner_, codes_;
  std::vector<Layer> layers_;
  GptRowsWeights::Norm last_norm_, final_norm_;
  Product head_;
  WholeStepMemory whole_;
  at::Tensor x_, queries_, packed_, packed_wide_, logits_, place_, position_, step_, drawn_;
};

}  // namespace tandem
#endif
