// Attention over packed sequences, forward and backward. On Hopper with heads of 64 by our
// own kernels (hopper_attention.cu), else by LibTorch's flash attention, whose results are copied.
// The same bits every time in both.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>
#include <cuda_runtime_api.h>

namespace tandem {

// LibTorch's flash attention adds up query gradients in any order unless it is told not to.
class DeterministicScope {
 public:
  DeterministicScope();
  ~DeterministicScope();
  DeterministicScope(const DeterministicScope&) = delete;
  DeterministicScope& operator=(const DeterministicScope&) = delete;

 private:
  bool before_, warned_;
};

struct PackedSequences {
  at::Tensor starts;    // [sequences + 1] int32
  int64_t longest = 0;  // places of one sequence at most
};

class GptAttention {
 public:
  // Under the weights' device. Not `causal`: a place sees its whole sequence. `slots`: backward
  // passes whose bias_parts are kept beside each other.
  GptAttention(int64_t heads, int64_t head_width, int64_t most_places, int64_t most_sequences,
               bool causal = true, int64_t slots = 1);
  bool own_kernels() const { return own_; }

  // Once before the calls of a pass, for sequences of `places` places together.
  void begin(const PackedSequences& sequences, int64_t places, cudaStream_t stream);

  // qkv [places, 3, heads, width], in memory also [places, heads, 3, width], -> out [places, heads,
  // width], logsumexp [heads, places] float32.
  void forward(const at::Tensor& qkv, const PackedSequences& sequences, const at::Tensor& out,
               const at::Tensor& logsumexp, cudaStream_t stream);
  // gradient [places, heads, width] of out -> qkv_gradient, like qkv. `dots` [heads, places]
  // float32 is work space.
  void backward(const at::Tensor& gradient, const at::Tensor& qkv, const at::Tensor& out,
                const at::Tensor& logsumexp, const PackedSequences& sequences,
                const at::Tensor& qkv_gradient, const at::Tensor& dots, cudaStream_t stream,
                int64_t slot = 0);

  // The backward pass's sums over places, in parts: [parts, heads * width] float32 of the gradients
  // of queries and values. Those of the keys are zero. Only of our own kernels.
  struct BiasParts {
    const float *query = nullptr, *value = nullptr;
    int query_parts = 0, value_parts = 0;
  };
  BiasParts bias_parts(const PackedSequences& sequences, int64_t places, int64_t slot = 0) const;

 private:
  bool own_ = false, causal_ = true;
  double pairs_ = 0;            // see HopperAttention
  at::Tensor tiles_;            // [2, most, 4] int32, see AttentionTiles
  at::Tensor sums_;             // [slots, 2, most, heads * width]
  at::Tensor unused_state_[2];  // of flash attention's dropout, which is not used
};

}  // namespace tandem
#endif
