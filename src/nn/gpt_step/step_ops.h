// The leaves of a pass that is walked forward and backward by hand over tensors: products, group
// norms over frames, attention over sequences that lie behind each other. In bfloat16 on a GPU
// through our kernels, cuBLASLt and flash attention; on the CPU by tensor operations in any type,
// so that the walk itself can be compared with autograd there. Nothing here has gradients of its
// own, and nothing waits for the device.
#pragma once

#include <ATen/core/TensorBody.h>

#include <memory>
#include <vector>

namespace tandem {

// out (+)= left right, of matrices; `turned` ones are used as their transposes. Out may be float32
// where the others are bfloat16.
struct StepProduct {
  at::Tensor left, right, out;
  bool left_turned = false, right_turned = false;
  bool adds = false;  // to what is in out
  at::Tensor added;   // like out: out = added + left right
  at::Tensor bias;    // [columns], added to every row
};

// Rows of `places` frames of which the first lengths[row] are real: [B] int64 on the device, 1 at
// least.
struct StepFrames {
  int64_t rows = 0, places = 0;
  at::Tensor lengths;
  // [2 B + 1] int32: each row's real frames are a sequence, and so is its padding.
  at::Tensor starts(int64_t before = 0) const;  // `before` more real places at each row's begin
};

class StepOps {
 public:
  // Under the device's scope. `measures`: which of cuBLASLt's algorithms is fastest is measured
  // when a form of product is first met outside of a capture.
  StepOps(const at::Device& device, bool measures);
  ~StepOps();

  void multiply(const StepProduct& product);

  // x [B T, D] -> out, padding gets 0; statistics [B, groups, 2] float32 are made.
  void norm(const at::Tensor& x, const StepFrames& frames, const at::Tensor& weight,
            const at::Tensor& bias, const at::Tensor& out, const at::Tensor& statistics);
  // The gradient of x; partial [B, 3, D] float32 gets what each row gives to the gradients of
  // weight and bias, and the sums of x_gradient over its frames.
  void norm_backward(const at::Tensor& gradient, const at::Tensor& x, const StepFrames& frames,
                     const at::Tensor& weight, const at::Tensor& statistics,
                     const at::Tensor& x_gradient, const at::Tensor& partial);

  // Self-attention of all frames of a sequence. qkv [places, heads, 3, width] -> out [places,
  // heads, width]. What backward needs is kept in `memory`.
  struct Attended {
    at::Tensor starts, logsumexp;
    int64_t longest = 0;
    std::shared_ptr<void> kernels;  // of a pass; shared by its layers
  };
  Attended attention_of(const StepFrames& frames, int64_t heads, int64_t width);
  void attend(const at::Tensor& qkv, const at::Tensor& out, Attended& memory);
  // -> qkv_gradient, like qkv; bias_gradient [heads * 3 * width] float32: its sums over places,
  // added or written.
  void attend_backward(const at::Tensor& gradient, const at::Tensor& qkv, const at::Tensor& out,
                       const Attended& memory, const at::Tensor& qkv_gradient,
                       const at::Tensor& bias_gradient, bool overwrites);

  // Queries [B N, heads, width] of each row over its `keys` [B (N + T), heads, width], of which
  // those before starts[2 row + 1] are real.
  struct Read {
    at::Tensor out;  // like queries
    at::Tensor query_starts, key_starts, logsumexp, state[2];
    int64_t most_queries = 0, most_keys = 0;
  };
  Read read(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
            const StepFrames& frames);
  // Gradients of queries, keys and values.
  std::vector<at::Tensor> read_backward(const at::Tensor& gradient, const at::Tensor& queries,
                                        const at::Tensor& keys, const at::Tensor& values,
                                        const Read& memory);

  // Sums over the rows of a matrix into float32 [columns], a multiple of 8 of them.
  void sum_rows(const at::Tensor& matrix, const at::Tensor& out, bool overwrites);
  // The same of parts [parts, kinds, columns]: out[k] gets the sum over parts of kind k.
  void sum_parts(const at::Tensor& parts, const std::vector<at::Tensor>& out, bool overwrites);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem
