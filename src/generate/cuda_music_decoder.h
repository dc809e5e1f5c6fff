// Decodes batches of clips on one GPU: weights packed in half precision for the row kernels, one
// captured graph a step, replayed for every column; tokens, draws and the step's number stay on the
// device, and the host waits once, at the end of a window.
//
// A clip's tokens depend on its caption, prompt and seed only. One thread uses it, with the
// device's scope open; everything is queued on the stream that is current when it is made.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "models/musicgen/music_decoder.h"
#include "models/musicgen/music_draw.h"
#include "nn/rows/captured_graph.h"
#include "nn/rows/music_rows.h"

namespace tandem {

// What memory is taken for. Smaller batches are decoded in it too.
struct MusicRoom {
  int64_t clips = 1, columns = 0, text = 0;  // columns: the start column included
  bool guided = true, prompted = false;
  bool holds(const MusicRoom& other) const;
};

class CudaMusicDecoder {
 public:
  struct Options {
    RowHalf half = RowHalf::fp16;
    bool eight_bit_cache = false;
    bool use_cache = true;  // false: earlier columns are computed again for each step
    bool capture = true;    // false: every kernel of a step is launched, for whoever traces them
    FewRows few_rows = {};
  };
  // Throws Error(config) for a model these kernels are not made for.
  CudaMusicDecoder(const MusicDecoder& decoder, const Options& options,
                   c10::cuda::CUDAStream stream);

  // Takes the memory, if what is there does not hold such a batch. When that fails, nothing is
  // held.
  void reserve(const MusicRoom& room);
  void release();
  // states [S, text width] float32 on the device, as the text encoder gives them; S may be 0.
  void read_text(int64_t clip, const at::Tensor& states);

  struct Window {
    at::Tensor forced;  // [B, K, columns] int64 on the CPU, -1 where tokens are to be drawn
    int64_t prompt_frames = 0, first_step = 0;
    std::vector<uint64_t> seeds;
    MusicDrawOptions draw;
  };
  // -> tokens [B, K, columns] int64 on the CPU. Throws Error(numeric) when a logit is no number.
  at::Tensor decode(const Window& window);

  // For measurements: the mean seconds of `steps` steps from `column` on, after a first one.
  double measure_steps(int64_t clips, int64_t column, int64_t steps);
  // For comparisons: logits [2B or B, K, V] behind `column` of the window's tokens.
  at::Tensor logits_behind(const Window& window, int64_t column);

  uint64_t captures() const { return captures_; }
  uint64_t steps() const { return steps_; }
  double seconds() const { return seconds_; }  // the device's own time
  const MusicRows& rows() const { return *rows_; }

 private:
  using GraphKey = std::pair<int64_t, bool>;  // clips of a step, guided
  int64_t bucket_of(int64_t clips) const;
  CapturedGraph& graph_of(int64_t clips, bool guided);
  void queue_begin(int64_t rows, const int32_t* row_column);
  // `column`: of the step, where the host knows it; -1: it does not.
  void queue_step(int64_t clips, bool guided, int64_t column = -1);
  void put(const Window& window);
  void put_rows(int64_t clips, int64_t bucket, bool guided);
  void feed(int64_t clips, bool guided, int64_t first, int64_t last);
  MusicTokens batch() const;

  MusicDecoderSize size_;
  Options options_;
  c10::cuda::CUDAStream stream_;
  Linear text_projection_;
  MusicRoom room_;
  std::unique_ptr<MusicRows> rows_;
  at::Tensor embeddings_, sinusoids_;
  at::Tensor tokens_, column_, failed_, keys_, settings_;
  at::Tensor row_place_, feed_place_, feed_column_;
  std::map<GraphKey, CapturedGraph> graphs_;
  uint64_t captures_ = 0, steps_ = 0;
  double seconds_ = 0;
};

}  // namespace tandem
#endif
