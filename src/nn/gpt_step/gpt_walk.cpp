#ifdef TANDEM_WITH_CUDA
#include "nn/gpt_step/gpt_walk.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>

#include <cmath>

namespace tandem {
namespace {

bf16* half_of(const at::Tensor& tensor) { return static_cast<bf16*>(tensor.data_ptr()); }
bf16* row_of(const at::Tensor& stacked, int64_t layer) { return half_of(stacked.select(0, layer)); }
float* gradient_of(const TrainedWeight& weight) { return weight.gradient.data_ptr<float>(); }
NormWeights norm_of(const TrainedWeight& weight, const TrainedWeight& bias) {
  return {half_of(weight.weight), half_of(bias.weight)};
}

}  // namespace

GptWalk::GptWalk(const GptStepWeights& weights, const GptSizes& sizes,
                 const GptStepOptions& options)
    : weights_(weights),
      sizes_(sizes),
      options_(options),
      buffers_(sizes, options),
      attention_(sizes.heads, sizes.width / sizes.heads, options.most_places,
                 2 * options.most_rows + 1, /*causal=*/true, GptBuffers::sum_slots) {
  batch_.places = options.most_places;
  if (!options.tune) return;
  stream_ = at::cuda::getCurrentCUDAStream();
  for (const int64_t parts : {1, 2, 4, 8})
    if (parts == 1 || options.most_places / parts >= 256) tune(options.most_places / parts);
}

void GptWalk::begin(const GptStepBatch& batch, const at::Tensor& step, const at::Tensor& scale,
                    uint64_t seed) {
  batch_ = batch;
  step_ = step;
  scale_ = scale;
  seed_ = seed;
  stream_ = at::cuda::getCurrentCUDAStream();
  waiting_sums_.count = 0;
  waiting_layers_ = 0;
}

Dropout GptWalk::dropout(int64_t stream) const {
  Dropout out;
  if (!step_.defined() || options_.dropout <= 0) return out;
  out.step = step_.const_data_ptr<int64_t>();
  out.seed = seed_;
  out.threshold = static_cast<uint32_t>(std::lround(options_.dropout * 65536));
  out.stream = static_cast<int>(stream);
  return out;
}

bf16* GptWalk::wide(int64_t which) const { return row_of(buffers_.wide, which); }

PackedSequences GptWalk::sequences() const {
  return {.starts = buffers_.numbers.narrow(0, 0, 2 * batch_.text_lengths.size(0) + 2),
          .longest = options_.longest};
}

at::Tensor GptWalk::qkv_view(const at::Tensor& buffer, int64_t layer) const {
  return buffer.select(0, layer)
      .flatten()
      .narrow(0, 0, batch_.places * 3 * sizes_.width)
      .view({batch_.places, 3, sizes_.heads, sizes_.width / sizes_.heads});
}

Product GptWalk::forward_product(const at::Tensor& left, const TrainedWeight& weight,
                                 const at::Tensor& out) const {
  Product product;
  product.left = left.data_ptr();
  product.right = weight.weight.data_ptr();
  product.out = out.data_ptr();
  product.rows = batch_.places;
  product.inner = weight.weight.size(0);
  product.columns = weight.weight.size(1);
  return product;
}

Product GptWalk::backward_product(const void* gradient, const TrainedWeight& weight,
                                  void* out) const {
  Product product;
  product.left = gradient;
  product.right = weight.weight.data_ptr();
  product.right_turned = true;
  product.out = out;
  product.rows = batch_.places;
  product.inner = weight.weight.size(1);
  product.columns = weight.weight.size(0);
  return product;
}

Product GptWalk::weight_product(const void* input, const void* gradient,
                                const TrainedWeight& weight) const {
  Product product;
  product.left = input;
  product.left_turned = true;
  product.right = gradient;
  product.out = weight.gradient.data_ptr();
  product.to_float = weight.gradient.scalar_type() == at::kFloat;
  product.adds = !batch_.overwrites;
  product.rows = weight.weight.size(0);
  product.columns = weight.weight.size(1);
  product.inner = batch_.places;
  return product;
}

// The projection of the forward pass stays in bfloat16: its input is the attention's, which nobody
// has in 8-bit floats, and it is a twelfth of the work.
void GptWalk::turn_weights(int64_t layer, bool flows_back) {
  const GptStepBlock& block = weights_.blocks[static_cast<size_t>(layer)];
  // The projection last: when a layer's weights are turned again, the others' largest values stand
  // where they stood.
  const std::pair<Fp8Weight, const TrainedWeight*> all[] = {{fp8_qkv, &block.qkv_weight},
                                                            {fp8_expand, &block.expand_weight},
                                                            {fp8_contract, &block.contract_weight},
                                                            {fp8_project, &block.project_weight}};
  Fp8Turns turns;
  for (const auto& [which, weight] : all) {
    if (which == fp8_project && !flows_back) continue;
    Fp8Turn& turn = turns.turn[turns.count++];
    turn.in = half_of(weight->weight);
    turn.rows = static_cast<int>(weight->weight.size(0));
    turn.columns = static_cast<int>(weight->weight.size(1));
    if (which != fp8_project) turn.turned = buffers_.fp8_turned[which];
    if (flows_back) turn.straight = straight_weights(layer)[which];
  }
  launch_fp8_weights(turns, buffers_.fp8_largest.select(0, layer).data_ptr<float>(), stream_);
}

void GptWalk::clear_largest() {
  const at::Tensor& largest = buffers_.fp8_largest;
  C10_CUDA_CHECK(cudaMemsetAsync(largest.data_ptr(), 0, largest.nbytes(), stream_));
}

const GptBuffers::Fp8Weights& GptWalk::straight_weights(int64_t layer) const {
  return buffers_.fp8_straight[static_cast<size_t>(kept(layer))];
}

Product GptWalk::in_fp8(Product product, const Fp8Rows& left, const Fp8Rows& right) {
  product.left = left.data;
  product.left_scales = left.scales;
  product.right = right.data;
  product.right_scales = right.scales;
  product.right_turned = true;
  return product;
}

void GptWalk::forward() {
  const int64_t rows = batch_.text_lengths.size(0);
  PackCall pack;
  pack.to = buffers_.packing;
  pack.text = batch_.text.const_data_ptr<int64_t>();
  pack.text_lengths = batch_.text_lengths.const_data_ptr<int64_t>();
  pack.codes = batch_.codes.const_data_ptr<int64_t>();
  pack.read_codes =
      batch_.read_codes.defined() ? batch_.read_codes.const_data_ptr<int64_t>() : pack.codes;
  pack.code_lengths = batch_.code_lengths.const_data_ptr<int64_t>();
  pack.slice = batch_.slice.const_data_ptr<int64_t>();
  pack.rows = static_cast<int>(rows);
  pack.texts = static_cast<int>(batch_.text.size(1));
  pack.sounds = static_cast<int>(batch_.codes.size(1));
  pack.latents = static_cast<int>(options_.latents);
  pack.places = static_cast<int>(batch_.places);
  pack.longest = static_cast<int>(options_.longest);
  pack.text_tokens = static_cast<int>(sizes_.text_tokens);
  pack.audio_tokens = static_cast<int>(sizes_.audio_tokens);
  pack.start_text = static_cast<int>(options_.start_text);
  pack.stop_text = static_cast<int>(options_.stop_text);
  pack.start_audio = static_cast<int>(options_.start_audio);
  pack.stop_audio = static_cast<int>(options_.stop_audio);
  pack.text_positions = static_cast<int>(weights_.text_positions.weight.size(0));
  pack.audio_positions = static_cast<int>(weights_.audio_positions.weight.size(0));
  pack.reads_stop = options_.reads_stop;
  launch_pack(pack, stream_);
  attention_.begin(sequences(), batch_.places, stream_);

  EmbedCall embed;
  embed.packing = buffers_.packing;
  embed.text_table = half_of(weights_.text_embedding.weight);
  embed.audio_table = half_of(weights_.audio_embedding.weight);
  embed.text_positions = half_of(weights_.text_positions.weight);
  embed.audio_positions = half_of(weights_.audio_positions.weight);
  embed.latents = batch_.latents.const_data_ptr<float>();
  embed.text_tokens = pack.text_tokens;
  embed.places = pack.places;
  embed.width = static_cast<int>(sizes_.width);
  embed.dropout = dropout(0);
  embed.out = half_of(buffers_.x);
  launch_embed(embed, stream_);
  if (options_.fp8) clear_largest();
  for (int64_t layer = 0; layer < sizes_.layers; ++layer) forward_layer(layer, true);
}

// From x[layer] to x[layer + 1] and its norm; without `whole` only as far as the backward pass
// needs what is not kept.
void GptWalk::forward_layer(int64_t layer, bool whole) {
  const GptStepBlock& block = weights_.blocks[static_cast<size_t>(layer)];
  const int64_t at = kept(layer), places = batch_.places;
  const bool fp8 = options_.fp8;
  const Fp8Rows* normed = fp8 ? &buffers_.fp8_normed : nullptr;
  const GptBuffers::Fp8Weights& turned = buffers_.fp8_turned;
  // With one place for all layers the backward pass, which comes here again, fills it.
  if (fp8) turn_weights(layer, scale_.defined() && (!options_.recompute || !whole));
  AddNormCall norm;
  norm.places = static_cast<int>(places);
  norm.width = static_cast<int>(sizes_.width);
  norm.normed = half_of(buffers_.normed);
  const auto stats = [&](int64_t of_layer, int64_t which) {
    return reinterpret_cast<float2*>(
        buffers_.stats.select(0, of_layer).select(0, which).data_ptr());
  };
  if (layer == 0 || !whole) {
    norm.x = row_of(buffers_.x, layer);
    norm.norm = norm_of(block.norm1_weight, block.norm1_bias);
    norm.stats = stats(layer, 0);
    launch_add_norm(norm, stream_, normed);
  }

  Product qkv = forward_product(buffers_.normed, block.qkv_weight, buffers_.qkv.select(0, at));
  qkv.bias = block.qkv_bias.weight.data_ptr();
  products_.run(fp8 ? in_fp8(qkv, *normed, turned[fp8_qkv]) : qkv, stream_);
  const at::Tensor sums = buffers_.logsumexp.select(0, at)
                              .narrow(0, 0, sizes_.heads * places)
                              .view({sizes_.heads, places});
  const at::Tensor attended = buffers_.attended.select(0, at).narrow(0, 0, places);
  attention_.forward(qkv_view(buffers_.qkv, at), sequences(),
                     attended.view({places, sizes_.heads, -1}), sums, stream_);
  products_.run(forward_product(attended, block.project_weight, buffers_.branch), stream_);

  norm.x = row_of(buffers_.x, layer);
  norm.branch = half_of(buffers_.branch);
  norm.bias = half_of(block.project_bias.weight);
  norm.sum = row_of(buffers_.middle, at);
  norm.norm = norm_of(block.norm2_weight, block.norm2_bias);
  norm.stats = stats(layer, 1);
  norm.dropout = dropout(1 + 2 * layer);
  launch_add_norm(norm, stream_, normed);

  const at::Tensor before_gelu = buffers_.before_gelu.select(0, at);
  Product expand = forward_product(buffers_.normed, block.expand_weight, before_gelu);
  expand.bias = block.expand_bias.weight.data_ptr();
  const at::Tensor activated = buffers_.wide.select(0, 0);
  if (gelu_in_product_ && whole) {
    expand.out = activated.data_ptr();
    expand.before_gelu = before_gelu.data_ptr();
  }
  products_.run(fp8 ? in_fp8(expand, *normed, turned[fp8_expand]) : expand, stream_);
  if (!whole) return;
  const Product contract = forward_product(activated, block.contract_weight, buffers_.branch);
  if (fp8) {
    launch_gelu_fp8(half_of(before_gelu), buffers_.fp8_wide, static_cast<int>(places),
                    static_cast<int>(4 * sizes_.width), stream_);
    products_.run(in_fp8(contract, buffers_.fp8_wide, turned[fp8_contract]), stream_);
  } else {
    if (!gelu_in_product_)
      launch_gelu(half_of(before_gelu), half_of(activated), places * 4 * sizes_.width, stream_);
    products_.run(contract, stream_);
  }

  const bool last = layer + 1 == sizes_.layers;
  norm.x = row_of(buffers_.middle, at);
  norm.bias = half_of(block.contract_bias.weight);
  norm.sum = row_of(buffers_.x, layer + 1);
  norm.dropout = dropout(2 + 2 * layer);
  if (last) {
    norm.normed = nullptr;
  } else {
    const GptStepBlock& next = weights_.blocks[static_cast<size_t>(layer) + 1];
    norm.norm = norm_of(next.norm1_weight, next.norm1_bias);
    norm.stats = stats(layer + 1, 0);
  }
  launch_add_norm(norm, stream_, last ? nullptr : normed);
}

// `flow` is the gradient of x[layer + 1], `masked` the same behind the mask of the branch that was
// added last. Both become those of x[layer].
void GptWalk::backward(int64_t layer) {
  const GptStepBlock& block = weights_.blocks[static_cast<size_t>(layer)];
  const int64_t at = kept(layer), width = sizes_.width;
  const int places = static_cast<int>(batch_.places);
  if (options_.recompute) forward_layer(layer, false);
  const GptBuffers::LayerSums& sums = buffers_.layer_sums[waiting_layers_];
  const bool fp8 = options_.fp8;
  const Fp8Rows &fp8_masked = buffers_.fp8_masked, &fp8_wide = buffers_.fp8_wide;
  // The gradient of a product's input.
  const auto flow_back = [&](const void* gradient, const TrainedWeight& weight, void* out,
                             const Fp8Rows& fp8_gradient, Fp8Weight which) {
    const Product product = backward_product(gradient, weight, out);
    products_.run(fp8 ? in_fp8(product, fp8_gradient, straight_weights(layer)[which]) : product,
                  stream_);
  };

  bf16 *activated = wide(0), *wide_flow = wide(1);
  bf16 *flow = half_of(buffers_.flow), *masked = half_of(buffers_.masked);
  bf16 *normed = half_of(buffers_.normed), *branch = half_of(buffers_.branch);
  flow_back(masked, block.contract_weight, wide_flow, fp8_masked, fp8_contract);
  if (fp8) {
    launch_gelu_backward_fp8(row_of(buffers_.before_gelu, at), wide_flow, activated, fp8_wide,
                             sums.expand, places, static_cast<int>(4 * width), stream_);
  } else {
    launch_gelu_backward(row_of(buffers_.before_gelu, at), wide_flow, activated, sums.expand,
                         places, static_cast<int>(4 * width), stream_);
  }
  products_.run(weight_product(activated, masked, block.contract_weight), stream_);
  flow_back(wide_flow, block.expand_weight, branch, fp8_wide, fp8_expand);

  NormBackwardCall norm;
  norm.x = row_of(buffers_.middle, at);
  norm.gradient = branch;
  norm.residual = norm.out = flow;
  norm.masked = masked;
  norm.normed = normed;
  norm.norm = norm_of(block.norm2_weight, block.norm2_bias);
  norm.stats = reinterpret_cast<float2*>(buffers_.stats.select(0, layer).select(0, 1).data_ptr());
  norm.partial = sums.second_norm;
  norm.places = places;
  norm.width = static_cast<int>(width);
  norm.dropout = dropout(1 + 2 * layer);
  launch_norm_backward(norm, stream_, fp8 ? &fp8_masked : nullptr);
  products_.run(weight_product(normed, wide_flow, block.expand_weight), stream_);

  const at::Tensor attended = buffers_.attended.select(0, at).narrow(0, 0, places);
  flow_back(masked, block.project_weight, branch, fp8_masked, fp8_project);
  products_.run(weight_product(attended.data_ptr(), masked, block.project_weight), stream_);
  const auto by_head = [&](const at::Tensor& tensor) {
    return tensor.narrow(0, 0, sizes_.heads * batch_.places).view({sizes_.heads, batch_.places});
  };
  attention_.backward(buffers_.branch.narrow(0, 0, places).view({places, sizes_.heads, -1}),
                      qkv_view(buffers_.qkv, at), attended.view({places, sizes_.heads, -1}),
                      by_head(buffers_.logsumexp.select(0, at)), sequences(),
                      qkv_view(buffers_.wide, 1), by_head(buffers_.dots), stream_, waiting_layers_);
  if (!attention_.own_kernels())
    launch_column_sums(wide_flow, sums.qkv_bias, places, static_cast<int>(3 * width), 3 * width,
                       stream_);
  if (fp8) {
    Fp8Jobs jobs;
    jobs.job[jobs.count++] = {
        .in = wide_flow, .out = fp8_wide, .rows = places, .columns = static_cast<int>(3 * width)};
    launch_fp8_rows(jobs, stream_);
  }
  flow_back(wide_flow, block.qkv_weight, branch, fp8_wide, fp8_qkv);
  norm.x = row_of(buffers_.x, layer);
  norm.norm = norm_of(block.norm1_weight, block.norm1_bias);
  norm.stats = reinterpret_cast<float2*>(buffers_.stats.select(0, layer).data_ptr());
  norm.partial = sums.first_norm;
  norm.dropout = dropout(2 * layer);  // of the layer below, or of the embeddings
  launch_norm_backward(norm, stream_, fp8 && layer > 0 ? &fp8_masked : nullptr);
  products_.run(weight_product(normed, wide_flow, block.qkv_weight), stream_);
  note_layer_sums(layer);
}

// The gradients of a layer's biases and norms, from their parts.
void GptWalk::note_layer_sums(int64_t layer) {
  const GptStepBlock& block = weights_.blocks[static_cast<size_t>(layer)];
  const GptBuffers::LayerSums& sums = buffers_.layer_sums[waiting_layers_];
  const int64_t width = sizes_.width;
  const int blocks = sum_blocks(batch_.places);
  SumJobs& jobs = waiting_sums_;
  const auto add = [&](const float* partial, int parts, int64_t stride, const TrainedWeight& to) {
    jobs.job[jobs.count++] = {.partial = partial,
                              .out = gradient_of(to),
                              .parts = parts,
                              .columns = static_cast<int>(to.gradient.numel()),
                              .stride = stride};
  };
  const auto add_norm = [&](const float* partial, const TrainedWeight& weight,
                            const TrainedWeight& bias, const TrainedWeight* below) {
    add(partial, blocks, 3 * width, weight);
    add(partial + width, blocks, 3 * width, bias);
    if (below) add(partial + 2 * width, blocks, 3 * width, *below);
  };
  add(sums.expand, buffers_.expand_parts, 4 * width, block.expand_bias);
  if (attention_.own_kernels()) {
    const auto parts = attention_.bias_parts(sequences(), batch_.places, waiting_layers_);
    const auto third = [&](int64_t which) {
      return TrainedWeight{{}, block.qkv_bias.gradient.narrow(0, which * width, width)};
    };
    add(parts.query, parts.query_parts, width, third(0));
    add(nullptr, 0, width, third(1));  // the keys' is zero
    add(parts.value, parts.value_parts, width, third(2));
  } else {
    add(sums.qkv_bias, column_parts, 3 * width, block.qkv_bias);
  }
  add_norm(sums.second_norm, block.norm2_weight, block.norm2_bias, &block.project_bias);
  add_norm(sums.first_norm, block.norm1_weight, block.norm1_bias,
           layer > 0 ? &weights_.blocks[static_cast<size_t>(layer) - 1].contract_bias : nullptr);
  if (++waiting_layers_ == GptBuffers::sum_slots) finish_sums();
}

void GptWalk::finish_sums() {
  waiting_sums_.overwrite = batch_.overwrites;
  launch_finish_sums(waiting_sums_, stream_);
  waiting_sums_.count = 0;
  waiting_layers_ = 0;
}

void GptWalk::embeddings_backward() {
  EmbedBackwardCall call;
  call.packing = buffers_.packing;
  call.gradient = half_of(buffers_.masked);
  call.text_table = gradient_of(weights_.text_embedding);
  call.audio_table = gradient_of(weights_.audio_embedding);
  call.text_positions = gradient_of(weights_.text_positions);
  call.audio_positions = gradient_of(weights_.audio_positions);
  call.latents = buffers_.latents_gradient.data_ptr<float>();
  call.rows = static_cast<int>(batch_.text_lengths.size(0));
  call.texts = static_cast<int>(batch_.text.size(1));
  call.sounds = static_cast<int>(batch_.codes.size(1));
  call.latents_a_row = static_cast<int>(options_.latents);
  call.reads_stop = options_.reads_stop;
  call.text_tokens = static_cast<int>(sizes_.text_tokens);
  call.audio_tokens = static_cast<int>(sizes_.audio_tokens);
  call.places = static_cast<int>(batch_.places);
  call.width = static_cast<int>(sizes_.width);
  if (batch_.overwrites)
    for (const TrainedWeight* table : {&weights_.text_embedding, &weights_.audio_embedding,
                                       &weights_.text_positions, &weights_.audio_positions})
      if (table != &weights_.audio_embedding || !recalls())  // it has its head's gradient already
        C10_CUDA_CHECK(
            cudaMemsetAsync(table->gradient.data_ptr(), 0, table->gradient.nbytes(), stream_));
  launch_embed_backward(call, stream_);
}

}  // namespace tandem
#endif
