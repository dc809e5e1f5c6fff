// MusicGen's transformer with keys and values kept, computed by the row kernels on one GPU: rows of
// x in, logits out. Rows of the caption's half come first; only they read the caption, whose keys
// and values are computed once (`read_text`). For the others that part is exactly zero.
//
// Everything is queued on the given stream; after `reserve` nothing is allocated, so the calls may
// be captured.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>

#include <vector>

#include "nn/rows/few_rows.h"
#include "nn/rows/music_kernels.h"
#include "nn/rows/whole_step_layers.h"

namespace tandem {

// float32 on any device; product weights are [out, in], without bias.
struct MusicRowsWeights {
  struct Norm {
    at::Tensor weight, bias;
  };
  struct Attention {
    at::Tensor query, key, value, output;
  };
  struct Layer {
    Norm norm_self, norm_cross, norm_inner;
    Attention self, cross;
    at::Tensor expand, contract;
  };
  int64_t width = 0, heads = 1;
  std::vector<Layer> layers;
  Norm last_norm;
  std::vector<at::Tensor> outputs;  // a codebook: [codes, D]
};

// What is kept for a batch.
struct MusicRowsShape {
  int64_t clips = 1;       // that read a caption: places 0 .. clips - 1
  int64_t places = 2;      // of keys and values
  int64_t positions = 0;   // of each
  int64_t text = 0;        // tokens of the longest caption
  int64_t rows = 2;        // of one call
  int64_t logit_rows = 2;  // of which logits are wanted
  bool operator==(const MusicRowsShape&) const = default;
};

class MusicRows {
 public:
  // On the current CUDA device.
  MusicRows(const MusicRowsWeights& weights, RowHalf half, bool eight_bit_cache,
            const FewRows& few_rows = {});

  // Takes the memory of a batch anew; captured calls are no longer valid then. `release` gives it
  // back.
  void reserve(const MusicRowsShape& shape);
  void release();
  const MusicRowsShape& shape() const { return shape_; }

  const at::Tensor& x() const { return x_; }          // [R, D] inputs, then the residual stream
  const at::Tensor& place() const { return place_; }  // [R] int32, for callers that fill them
  const at::Tensor& position() const { return position_; }
  const at::Tensor& own_row() const { return own_row_; }
  const at::Tensor& logits() const { return logits_; }  // [R, K * codes]

  // states [S, D] float32 on the device: what the decoder reads of the caption at that place.
  void read_text(int64_t place, const at::Tensor& states);

  // All layers over the first `rows` rows of x, of which the first `reading` read their caption.
  // `one_row_a_place`: no row reads keys and values of another row of this call. Must follow
  // launch_music_begin, which fills x, places and positions.
  void run(int64_t rows, int64_t reading, bool one_row_a_place, cudaStream_t stream);
  bool runs_whole(int64_t rows) const;  // in one kernel, where every place has one row
  // Positions every row of the next run attends to, for whoever traces its work; 0: not known.
  void know_positions(int64_t positions) { known_positions_ = positions; }
  // Norm and heads of the first `rows` rows.
  void finish(int64_t rows, cudaStream_t stream);

  int64_t weight_bytes() const;  // read in every step
  int64_t cache_bytes() const;   // of keys and values, those of captions included

 private:
  struct Norm {
    at::Tensor weight, bias;
  };
  struct Product {
    at::Tensor packed;
    int64_t inner = 0, columns = 0;
  };
  struct Layer {
    Norm norm_self, norm_cross, norm_inner;
    Product qkv, project, cross_query, cross_project, expand, contract;  // behind each other
    at::Tensor keys, values, key_scales, value_scales;  // [P, H, C, head_pad], [P, H, C]
    at::Tensor text_keys, text_values;                  // [N, H, S, head_pad]
    std::vector<Product*> products();
  };
  Product pack(const std::vector<at::Tensor>& weights) const;
  RowProduct product(const Product& weights, int64_t rows) const;
  RowProduct normed(const Product& weights, int64_t rows, const Norm& norm, cudaStream_t stream);
  double attended_positions(int64_t rows, bool text) const;
  void attend(Layer& layer, int64_t rows, bool text, cudaStream_t stream);
  void run_whole(int64_t rows, int64_t reading, cudaStream_t stream);
  std::vector<WholeStepLayer> whole_step_layers() const;
  void self_block(Layer& layer, int64_t rows, cudaStream_t stream);
  void cross_block(Layer& layer, int64_t rows, cudaStream_t stream);
  void inner_block_of(Layer& layer, const Product& after, int64_t rows, cudaStream_t stream);
  KeyValues cache_of(const at::Tensor& keys, const at::Tensor& values) const;

  RowHalf half_;
  FewRows few_rows_;
  bool eight_bits_, one_row_a_place_ = false;
  int64_t width_, heads_, inner_, head_width_, pad_, codes_ = 0;
  MusicRowsShape shape_;
  int64_t known_positions_ = 0;
  std::vector<int64_t> text_lengths_;  // by clip
  std::vector<Layer> layers_;
  Norm last_norm_;
  Product head_;
  at::Tensor text_weights_;  // [L, 2, D, D] half: keys and values of captions
  at::Tensor text_cache_;    // [L, 2, N, H, S, head_pad]; the layers' text_keys and text_values
  at::Tensor x_, queries_, packed_, packed_wide_, logits_, place_, position_, own_row_, zeros_;
  at::Tensor new_keys_, new_values_, partial_, arrived_, text_last_;
  WholeStepMemory whole_;
};

}  // namespace tandem
#endif
