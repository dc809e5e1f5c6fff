#include "nn/rows/gpt_rows.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>

#include <algorithm>

#include "nn/rows/packed_weight.h"

namespace tandem {
namespace {

at::Tensor on_device(const at::Tensor& tensor) {
  return tensor.to(at::kCUDA, at::kFloat).contiguous();
}

}  // namespace

GptRows::Product GptRows::pack(const at::Tensor& weight, const at::Tensor& bias) const {
  const int64_t inner = padded_to(weight.size(0), inner_block);
  return {pack_weight(weight, inner, type_of(half_)), on_device(bias), inner, weight.size(1)};
}

GptRows::GptRows(const GptRowsWeights& weights, RowHalf half, int64_t places, int64_t positions,
                 const FewRows& few_rows)
    : half_(half),
      few_rows_(few_rows),
      width_(weights.width),
      heads_(weights.heads),
      positions_(positions),
      inner_(padded_to(weights.width, inner_block)),
      codes_(weights.head.size(1)) {
  const auto cache = at::TensorOptions(at::kCUDA).dtype(type_of(half));
  const int64_t pad = head_pad(static_cast<int>(width_ / heads_));
  for (const GptRowsWeights::Layer& layer : weights.layers) {
    layers_.push_back({.norm1_weight = on_device(layer.norm1_weight),
                       .norm1_bias = on_device(layer.norm1_bias),
                       .norm2_weight = on_device(layer.norm2_weight),
                       .norm2_bias = on_device(layer.norm2_bias),
                       .qkv = pack(layer.qkv_weight, layer.qkv_bias),
                       .project = pack(layer.project_weight, layer.project_bias),
                       .expand = pack(layer.expand_weight, layer.expand_bias),
                       .contract = pack(layer.contract_weight, layer.contract_bias),
                       .keys = at::zeros({places, heads_, positions, pad}, cache),
                       .values = at::zeros({places, heads_, positions, pad}, cache)});
    join_weights(layers_.back());
  }
  last_norm_ = {on_device(weights.last_norm.weight), on_device(weights.last_norm.bias)};
  if (weights.final_norm.weight.defined())
    final_norm_ = {on_device(weights.final_norm.weight), on_device(weights.final_norm.bias)};
  head_ = pack(weights.head, weights.head_bias);
  if (runs_whole(1)) whole_ = WholeStepMemory(whole_step_layers());
}

// Pointers of all layers, for the kernel that runs them in one go.
std::vector<WholeStepLayer> GptRows::whole_step_layers() const {
  std::vector<WholeStepLayer> table;
  for (const Layer& layer : layers_) {
    table.push_back({.qkv = layer.qkv.packed.const_data_ptr(),
                     .project = layer.project.packed.const_data_ptr(),
                     .expand = layer.expand.packed.const_data_ptr(),
                     .contract = layer.contract.packed.const_data_ptr(),
                     .qkv_bias = layer.qkv.bias.const_data_ptr<float>(),
                     .project_bias = layer.project.bias.const_data_ptr<float>(),
                     .expand_bias = layer.expand.bias.const_data_ptr<float>(),
                     .contract_bias = layer.contract.bias.const_data_ptr<float>(),
                     .norm_self = {layer.norm1_weight.const_data_ptr<float>(),
                                   layer.norm1_bias.const_data_ptr<float>()},
                     .norm_inner = {layer.norm2_weight.const_data_ptr<float>(),
                                    layer.norm2_bias.const_data_ptr<float>()},
                     .keys = layer.keys.mutable_data_ptr(),
                     .values = layer.values.mutable_data_ptr()});
  }
  return table;
}

bool GptRows::runs_whole(int64_t rows) const {
  return few_rows_.whole && layers_.front().qkv.inner == width_ &&
         whole_step_runs(static_cast<int>(rows), width_, heads_, layers_.front().contract.inner);
}

void GptRows::join_weights(Layer& layer) {
  const std::vector<Product*> parts = {&layer.qkv, &layer.project, &layer.expand, &layer.contract};
  std::vector<at::Tensor> flat;
  for (const Product* part : parts) flat.push_back(part->packed.view({-1}));
  const at::Tensor all = at::cat(flat);
  int64_t start = 0;
  for (Product* part : parts) {
    const int64_t size = part->packed.numel();
    part->packed = all.narrow(0, start, size);
    start += size;
  }
}

void GptRows::reserve(int64_t rows) {
  if (x_.defined() && rows <= x_.size(0)) return;
  const int64_t room = padded_to(rows, 64);
  const int64_t pad = head_pad(static_cast<int>(width_ / heads_));
  const auto floats = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
  const auto halves = floats.dtype(type_of(half_));
  const auto ints = floats.dtype(at::kInt);
  x_ = at::zeros({room, width_}, floats);
  queries_ = at::zeros({room, heads_, pad}, floats);
  packed_ = at::zeros({room, inner_}, halves);
  packed_wide_ = at::zeros({room, layers_.front().contract.inner}, halves);
  logits_ = at::zeros({room, codes_}, floats);
  place_ = at::full({room}, -1, ints);
  position_ = at::zeros({room}, ints);
  step_ = at::zeros({room}, ints);
  drawn_ = at::full({room}, -1, ints);
}

RowProduct GptRows::product(const Product& weights, int64_t rows) const {
  RowProduct call;
  call.half = half_;
  call.rows = static_cast<int>(rows);
  call.inner = static_cast<int>(weights.inner);
  call.columns = static_cast<int>(weights.columns);
  call.weight = weights.packed.const_data_ptr();
  call.bias = weights.bias.const_data_ptr<float>();
  call.packed_rows = packed_.const_data_ptr();
  return call;
}

void GptRows::norm_rows(int64_t rows, const at::Tensor& weight, const at::Tensor& bias,
                        cudaStream_t stream) {
  launch_row_norm({.half = half_,
                   .rows = static_cast<int>(rows),
                   .width = static_cast<int>(width_),
                   .inner = static_cast<int>(inner_),
                   .in = x_.const_data_ptr<float>(),
                   .first = {weight.const_data_ptr<float>(), bias.const_data_ptr<float>()},
                   .packed_out = packed_.mutable_data_ptr()},
                  stream);
}

void GptRows::run(int64_t rows, const RowPlaces& places, bool one_row_a_place,
                  cudaStream_t stream) {
  if (one_row_a_place && runs_whole(rows)) {
    WholeStep call = whole_.call();
    call.half = half_;
    call.rows = static_cast<int>(rows);
    call.positions = static_cast<int>(positions_);
    call.x = x_.mutable_data_ptr<float>();
    call.places = places;
    launch_whole_step(call, stream);
    return;
  }
  // With few rows every block makes the norms it needs: cheaper than a kernel for them.
  const bool few = rows <= 4;
  const auto normed = [&](RowProduct call, const at::Tensor& weight, const at::Tensor& bias) {
    if (few) {
      call.norm_input = x_.const_data_ptr<float>();
      call.norm_width = static_cast<int>(width_);
      call.norm = {weight.const_data_ptr<float>(), bias.const_data_ptr<float>()};
    } else {
      norm_rows(rows, weight, bias, stream);
    }
    return call;
  };
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    // At few rows the step waits for memory, so kernels call for the weights of later ones: memory
    // is then busy all the time, and not only while a product runs.
    const auto ahead_of = [&](RowProduct call, const Product& first, const Product& last) {
      if (rows <= row_block) {
        const auto* begin = static_cast<const char*>(first.packed.const_data_ptr());
        const auto* end = static_cast<const char*>(last.packed.const_data_ptr());
        call.next_weight = begin;
        call.next_bytes = end - begin + static_cast<int64_t>(last.packed.nbytes());
      }
      return call;
    };
    const Product& after = i + 1 < layers_.size() ? layers_[i + 1].qkv : head_;
    const KeyValues cache{.keys = layer.keys.mutable_data_ptr(),
                          .values = layer.values.mutable_data_ptr(),
                          .heads = static_cast<int>(heads_),
                          .head_width = static_cast<int>(width_ / heads_),
                          .positions = static_cast<int>(positions_)};
    RowProduct qkv = normed(product(layer.qkv, rows), layer.norm1_weight, layer.norm1_bias);
    qkv.output = RowOutput::query_key_value;
    qkv.out = queries_.mutable_data_ptr<float>();
    qkv.places = places;
    qkv.cache = cache;
    launch_row_product(ahead_of(qkv, layer.project, layer.expand), stream);
    launch_row_attention({.half = half_,
                          .rows = static_cast<int>(rows),
                          .inner = static_cast<int>(inner_),
                          .queries = queries_.const_data_ptr<float>(),
                          .places = places,
                          .cache = cache,
                          .early = few_rows_.early && one_row_a_place && rows <= row_block,
                          .packed_out = packed_.mutable_data_ptr()},
                         stream);
    RowProduct project = product(layer.project, rows);
    project.output = RowOutput::add;
    project.out = x_.mutable_data_ptr<float>();
    launch_row_product(ahead_of(project, layer.contract, layer.contract), stream);

    RowProduct expand = normed(product(layer.expand, rows), layer.norm2_weight, layer.norm2_bias);
    expand.output = RowOutput::gelu_tanh;
    expand.packed_out = packed_wide_.mutable_data_ptr();
    expand.packed_out_inner = static_cast<int>(layer.contract.inner);
    launch_row_product(ahead_of(expand, after, after), stream);
    RowProduct contract = product(layer.contract, rows);
    contract.packed_rows = packed_wide_.const_data_ptr();
    contract.output = RowOutput::add;
    contract.out = x_.mutable_data_ptr<float>();
    launch_row_product(contract, stream);
  }
}

void GptRows::finish(const Finish& what, const at::Tensor& latents, cudaStream_t stream) {
  RowNormCall norm{
      .half = half_,
      .rows = static_cast<int>(what.rows),
      .width = static_cast<int>(width_),
      .inner = static_cast<int>(inner_),
      .in = x_.const_data_ptr<float>(),
      .source_row = what.source_row,
      .first = {last_norm_.weight.const_data_ptr<float>(), last_norm_.bias.const_data_ptr<float>()},
      .packed_out = packed_.mutable_data_ptr(),
      .latents = latents.mutable_data_ptr<float>(),
      .latent_steps = static_cast<int>(latents.size(1)),
      .latent_place = what.place,
      .latent_step = what.step};
  if (final_norm_.weight.defined())
    norm.second = {final_norm_.weight.const_data_ptr<float>(),
                   final_norm_.bias.const_data_ptr<float>()};
  launch_row_norm(norm, stream);
  RowProduct head = product(head_, what.rows);
  head.output = RowOutput::store;
  head.out = logits_.mutable_data_ptr<float>();
  launch_row_product(head, stream);
}

int64_t GptRows::weight_bytes() const {
  int64_t bytes = static_cast<int64_t>(head_.packed.nbytes());
  for (const Layer& layer : layers_) {
    for (const Product* part : {&layer.qkv, &layer.project, &layer.expand, &layer.contract})
      bytes += static_cast<int64_t>(part->packed.nbytes());
  }
  return bytes;
}

}  // namespace tandem
#endif
