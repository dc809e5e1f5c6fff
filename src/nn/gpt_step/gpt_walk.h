// The pass of GptStep over its buffers, layer by layer. Everything is queued on the stream that is
// current when `begin` is called.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include "nn/gpt_step/gpt_attention.h"
#include "nn/gpt_step/gpt_buffers.h"
#include "nn/gpt_step/gpt_products.h"

namespace tandem {

class GptWalk {
 public:
  GptWalk(const GptStepWeights& weights, const GptSizes& sizes, const GptStepOptions& options);

  // What the calls below work on. `step` and `scale` undefined: no dropout, no gradients.
  void begin(const GptStepBatch& batch, const at::Tensor& step, const at::Tensor& scale,
             uint64_t seed);
  void forward();  // packing, embeddings, all layers
  void heads();    // losses, and gradients down to the last layer's output
  // The gradients of biases and norms are there after finish_sums only.
  void backward(int64_t layer);
  void finish_sums();
  void embeddings_backward();

  Dropout dropout(int64_t stream) const;
  GptBuffers& buffers() { return buffers_; }
  const GptBuffers& buffers() const { return buffers_; }
  uint64_t bytes() const { return buffers_.bytes + products_.workspace_bytes(); }
  Products& products() { return products_; }

  // The three products of a weight stored [in, out]: out = left * weight, the gradient of its
  // input, and its own gradient.
  Product forward_product(const at::Tensor& left, const TrainedWeight& weight,
                          const at::Tensor& out) const;
  Product backward_product(const void* gradient, const TrainedWeight& weight, void* out) const;
  Product weight_product(const void* input, const void* gradient,
                         const TrainedWeight& weight) const;

 private:
  // The weights of a layer in 8-bit floats; where nothing flows back for the forward pass only.
  void turn_weights(int64_t layer, bool flows_back);
  void clear_largest();  // of all layers' weights, before the first of them is turned
  // The same product of 8-bit floats.
  static Product in_fp8(Product product, const Fp8Rows& left, const Fp8Rows& right);
  const GptBuffers::Fp8Weights& straight_weights(int64_t layer) const;
  void forward_layer(int64_t layer, bool whole);
  void note_layer_sums(int64_t layer);
  // The third tells the code that was read, by the audio embedding: see recall_weight.
  enum class Head { text, audio, recall };
  void head(Head which);
  bool recalls() const { return scale_.defined() && options_.recall_weight > 0; }
  void tune(int64_t places);
  int64_t kept(int64_t layer) const { return buffers_.kept == 1 ? 0 : layer; }
  bf16* wide(int64_t which) const;
  PackedSequences sequences() const;
  at::Tensor qkv_view(const at::Tensor& buffer, int64_t layer) const;

  const GptStepWeights weights_;
  const GptSizes sizes_;
  const GptStepOptions options_;
  GptBuffers buffers_;
  Products products_;
  GptAttention attention_;

  SumJobs waiting_sums_;  // of layers whose partial sums are there
  int64_t waiting_layers_ = 0;

  GptStepBatch batch_;
  at::Tensor step_, scale_;
  uint64_t seed_ = 0;
  cudaStream_t stream_ = nullptr;
  bool gelu_in_product_ = false;  // where that was measured to be faster
};

}  // namespace tandem
#endif
