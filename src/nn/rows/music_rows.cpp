#include "nn/rows/music_rows.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>

#include "nn/rows/packed_weight.h"
#include "nn/work_note.h"

namespace tandem {
namespace {

at::Tensor on_device(const at::Tensor& tensor) {
  // By index: a tensor on another GPU counts as being on "a" GPU.
  const at::Device here(at::kCUDA, c10::cuda::current_device());
  return tensor.to(here, at::kFloat).contiguous();
}

const float* floats_of(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

}  // namespace

std::vector<MusicRows::Product*> MusicRows::Layer::products() {
  return {&qkv, &project, &cross_query, &cross_project, &expand, &contract};
}

// Several weights of one input, side by side.
MusicRows::Product MusicRows::pack(const std::vector<at::Tensor>& weights) const {
  std::vector<at::Tensor> there;
  for (const at::Tensor& weight : weights) there.push_back(on_device(weight));
  const at::Tensor all = at::cat(there, 0).t();
  const int64_t inner = padded_to(all.size(0), inner_block);
  return {pack_weight(all, inner, type_of(half_)), inner, all.size(1)};
}

MusicRows::MusicRows(const MusicRowsWeights& weights, RowHalf half, bool eight_bit_cache,
                     const FewRows& few_rows)
    : half_(half),
      few_rows_(few_rows),
      eight_bits_(eight_bit_cache),
      width_(weights.width),
      heads_(weights.heads),
      inner_(padded_to(weights.width, inner_block)),
      head_width_(weights.width / weights.heads),
      pad_(head_pad(static_cast<int>(head_width_))) {
  const auto norm = [](const MusicRowsWeights::Norm& from) {
    return Norm{on_device(from.weight), on_device(from.bias)};
  };
  std::vector<at::Tensor> text;
  for (const MusicRowsWeights::Layer& from : weights.layers) {
    Layer layer{.norm_self = norm(from.norm_self),
                .norm_cross = norm(from.norm_cross),
                .norm_inner = norm(from.norm_inner),
                .qkv = pack({from.self.query, from.self.key, from.self.value}),
                .project = pack({from.self.output}),
                .cross_query = pack({from.cross.query}),
                .cross_project = pack({from.cross.output}),
                .expand = pack({from.expand}),
                .contract = pack({from.contract})};
    std::vector<at::Tensor> flat;
    for (const Product* part : layer.products()) flat.push_back(part->packed.view({-1}));
    const at::Tensor all = at::cat(flat);
    int64_t start = 0;
    for (Product* part : layer.products()) {
      const int64_t size = part->packed.numel();
      part->packed = all.narrow(0, start, size);
      start += size;
    }
    layers_.push_back(std::move(layer));
    for (const at::Tensor& weight : {from.cross.key, from.cross.value})
      text.push_back(on_device(weight).clamp(-65504, 65504).to(type_of(half_)));
  }
  text_weights_ = at::stack(text).view({static_cast<int64_t>(layers_.size()), 2, width_, width_});
  last_norm_ = norm(weights.last_norm);
  head_ = pack(weights.outputs);
  codes_ = head_.columns;
}

void MusicRows::release() {
  shape_ = {};
  x_ = queries_ = packed_ = packed_wide_ = logits_ = place_ = position_ = own_row_ = zeros_ =
      at::Tensor();
  new_keys_ = new_values_ = partial_ = arrived_ = text_last_ = text_cache_ = at::Tensor();
  whole_ = {};
  for (Layer& layer : layers_)
    layer.keys = layer.values = layer.key_scales = layer.value_scales = layer.text_keys =
        layer.text_values = at::Tensor();
}

void MusicRows::reserve(const MusicRowsShape& shape) {
  release();
  const int64_t room = padded_to(shape.rows, 64), logit_room = padded_to(shape.logit_rows, 64);
  const auto floats = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
  const auto halves = floats.dtype(type_of(half_));
  const auto ints = floats.dtype(at::kInt);
  for (Layer& layer : layers_) {
    const auto kept = eight_bits_ ? floats.dtype(at::kChar) : halves;
    layer.keys = at::zeros({shape.places, heads_, shape.positions, pad_}, kept);
    layer.values = at::zeros_like(layer.keys);
    if (eight_bits_) {
      layer.key_scales = at::zeros({shape.places, heads_, shape.positions}, floats);
      layer.value_scales = at::zeros_like(layer.key_scales);
    }
  }
  text_cache_ = at::zeros(
      {static_cast<int64_t>(layers_.size()), 2, shape.clips, heads_, shape.text, pad_}, halves);
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].text_keys = text_cache_[static_cast<int64_t>(i)][0];
    layers_[i].text_values = text_cache_[static_cast<int64_t>(i)][1];
  }
  x_ = at::zeros({room, width_}, floats);
  queries_ = at::zeros({room, heads_, pad_}, floats);
  packed_ = at::zeros({room, inner_}, halves);
  packed_wide_ = at::zeros({room, layers_.front().contract.inner}, halves);
  logits_ = at::zeros({logit_room, codes_}, floats);
  place_ = at::full({room}, -1, ints);
  position_ = at::zeros({room}, ints);
  own_row_ = at::full({room}, -1, ints);
  zeros_ = at::zeros({room}, ints);
  if (eight_bits_) {
    new_keys_ = at::zeros({room, heads_, pad_}, halves);
    new_values_ = at::zeros_like(new_keys_);
  }
  partial_ = at::empty(
      {std::min<int64_t>(room, 512 / heads_ + 64), heads_, attention_parts, pad_ + 2}, floats);
  arrived_ = at::zeros({partial_.size(0), heads_}, ints);
  text_last_ = at::zeros({shape.clips}, ints);
  text_lengths_.assign(static_cast<size_t>(shape.clips), 0);
  if (runs_whole(1)) whole_ = WholeStepMemory(whole_step_layers());
  shape_ = shape;
}

void MusicRows::read_text(int64_t place, const at::Tensor& states) {
  const int64_t length = states.size(0), layers = text_weights_.size(0);
  const at::Tensor seen = states.clamp(-65504, 65504).to(type_of(half_));
  // All layers at once: four launches for each of them would take longer than their work.
  const at::Tensor all = at::matmul(seen, text_weights_.view({-1, width_}).t());
  text_cache_.select(2, place)
      .narrow(3, 0, length)
      .narrow(4, 0, head_width_)
      .copy_(all.view({length, layers, 2, heads_, head_width_}).permute({1, 2, 3, 0, 4}));
  text_last_[place].fill_(length - 1);
  text_lengths_[static_cast<size_t>(place)] = length;
}

RowProduct MusicRows::product(const Product& weights, int64_t rows) const {
  RowProduct call;
  call.half = half_;
  call.rows = static_cast<int>(rows);
  call.inner = static_cast<int>(weights.inner);
  call.columns = static_cast<int>(weights.columns);
  call.weight = weights.packed.const_data_ptr();
  call.packed_rows = packed_.const_data_ptr();
  return call;
}

// A product of normed rows of x. With few rows every block makes the norms it needs: cheaper than a
// kernel for them.
RowProduct MusicRows::normed(const Product& weights, int64_t rows, const Norm& norm,
                             cudaStream_t stream) {
  RowProduct call = product(weights, rows);
  const RowNorm of = {floats_of(norm.weight), floats_of(norm.bias)};
  if (rows <= 4) {
    call.norm_input = floats_of(x_);
    call.norm_width = static_cast<int>(width_);
    call.norm = of;
  } else {
    launch_row_norm({.half = half_,
                     .rows = static_cast<int>(rows),
                     .width = static_cast<int>(width_),
                     .inner = static_cast<int>(inner_),
                     .in = floats_of(x_),
                     .first = of,
                     .packed_out = packed_.mutable_data_ptr()},
                    stream);
  }
  return call;
}

KeyValues MusicRows::cache_of(const at::Tensor& keys, const at::Tensor& values) const {
  return {.keys = keys.mutable_data_ptr(),
          .values = values.mutable_data_ptr(),
          .heads = static_cast<int>(heads_),
          .head_width = static_cast<int>(head_width_),
          .positions = static_cast<int>(keys.size(2))};
}

// Of all rows together; 0: not known. In a step the rows that read a caption are the clips.
double MusicRows::attended_positions(int64_t rows, bool text) const {
  if (known_positions_ <= 0) return 0;
  if (!text) return static_cast<double>(rows * known_positions_);
  int64_t sum = 0;
  for (size_t i = 0; i < std::min(text_lengths_.size(), static_cast<size_t>(rows)); ++i)
    sum += text_lengths_[i];
  return static_cast<double>(sum);
}

void MusicRows::attend(Layer& layer, int64_t rows, bool text, cudaStream_t stream) {
  MusicAttention call{
      .half = half_,
      .rows = static_cast<int>(rows),
      .inner = static_cast<int>(inner_),
      .queries = floats_of(queries_),
      .places = {place_.const_data_ptr<int32_t>(), position_.const_data_ptr<int32_t>()},
      .last = text ? text_last_.const_data_ptr<int32_t>() : nullptr,
      .cache =
          text ? cache_of(layer.text_keys, layer.text_values) : cache_of(layer.keys, layer.values),
      .early = text || one_row_a_place_,
      .splits = text ? 1 : music_attention_splits(static_cast<int>(rows), static_cast<int>(heads_)),
      .partial = partial_.mutable_data_ptr<float>(),
      .arrived = arrived_.mutable_data_ptr<int32_t>(),
      .packed_out = packed_.mutable_data_ptr()};
  if (eight_bits_ && !text) {
    call.eight_bits = true;
    call.new_keys = new_keys_.const_data_ptr();
    call.new_values = new_values_.const_data_ptr();
    call.key_scales = layer.key_scales.mutable_data_ptr<float>();
    call.value_scales = layer.value_scales.mutable_data_ptr<float>();
  }
  const double positions = attended_positions(rows, text);
  const auto width = static_cast<double>(heads_ * pad_);
  const double kept = eight_bits_ && !text ? 1 + 4.0 / static_cast<double>(pad_) : 2;
  const WorkNote note("tandem::music_attention",
                      4 * positions * static_cast<double>(heads_ * head_width_),
                      2 * positions * width * kept);
  launch_music_attention(call, stream);
}

namespace {

// At few rows a step waits for memory, so products call for the weights of later ones: memory is
// then busy all the time, and not only while a product runs.
RowProduct ahead_of(RowProduct call, const at::Tensor& first, const at::Tensor& last) {
  if (call.rows > row_block) return call;
  const auto* begin = static_cast<const char*>(first.const_data_ptr());
  const auto* end = static_cast<const char*>(last.const_data_ptr());
  call.next_weight = begin;
  call.next_bytes = end - begin + static_cast<int64_t>(last.nbytes());
  return call;
}

}  // namespace

void MusicRows::self_block(Layer& layer, int64_t rows, cudaStream_t stream) {
  RowProduct project = product(layer.project, rows);
  project.output = RowOutput::add;
  project.out = x_.mutable_data_ptr<float>();
  project = ahead_of(project, layer.expand.packed, layer.expand.packed);
  RowProduct qkv = normed(layer.qkv, rows, layer.norm_self, stream);
  qkv.output = RowOutput::query_key_value;
  qkv.out = queries_.mutable_data_ptr<float>();
  if (eight_bits_) {
    qkv.places = {own_row_.const_data_ptr<int32_t>(), zeros_.const_data_ptr<int32_t>()};
    qkv.cache = cache_of(new_keys_.unsqueeze(2), new_values_.unsqueeze(2));
  } else {
    qkv.places = {place_.const_data_ptr<int32_t>(), position_.const_data_ptr<int32_t>()};
    qkv.cache = cache_of(layer.keys, layer.values);
  }
  launch_row_product(ahead_of(qkv, layer.project.packed, layer.cross_project.packed), stream);
  attend(layer, rows, /*text=*/false, stream);
  launch_row_product(project, stream);
}

void MusicRows::cross_block(Layer& layer, int64_t rows, cudaStream_t stream) {
  RowProduct query = normed(layer.cross_query, rows, layer.norm_cross, stream);
  query.output = RowOutput::query_key_value;  // only the first part of it
  query.out = queries_.mutable_data_ptr<float>();
  query.places = {place_.const_data_ptr<int32_t>(), position_.const_data_ptr<int32_t>()};
  query.cache = cache_of(layer.text_keys, layer.text_values);
  launch_row_product(query, stream);
  attend(layer, rows, /*text=*/true, stream);
  RowProduct project = product(layer.cross_project, rows);
  project.output = RowOutput::add;
  project.out = x_.mutable_data_ptr<float>();
  launch_row_product(ahead_of(project, layer.contract.packed, layer.contract.packed), stream);
}

void MusicRows::inner_block_of(Layer& layer, const Product& after, int64_t rows,
                               cudaStream_t stream) {
  RowProduct expand = normed(layer.expand, rows, layer.norm_inner, stream);
  expand.output = RowOutput::gelu_erf;
  expand.packed_out = packed_wide_.mutable_data_ptr();
  expand.packed_out_inner = static_cast<int>(layer.contract.inner);
  launch_row_product(ahead_of(expand, after.packed, after.packed), stream);
  RowProduct contract = product(layer.contract, rows);
  contract.packed_rows = packed_wide_.const_data_ptr();
  contract.output = RowOutput::add;
  contract.out = x_.mutable_data_ptr<float>();
  launch_row_product(contract, stream);
}

bool MusicRows::runs_whole(int64_t rows) const {
  // An 8-bit cache is written by the attention itself, which the one kernel does not do.
  return few_rows_.whole && !eight_bits_ && inner_ == width_ &&
         whole_step_runs(static_cast<int>(rows), width_, heads_, layers_.front().contract.inner);
}

void MusicRows::run(int64_t rows, int64_t reading, bool one_row_a_place, cudaStream_t stream) {
  one_row_a_place_ = one_row_a_place;
  if (one_row_a_place && runs_whole(rows)) return run_whole(rows, reading, stream);
  for (size_t i = 0; i < layers_.size(); ++i) {
    self_block(layers_[i], rows, stream);
    if (reading > 0) cross_block(layers_[i], reading, stream);
    inner_block_of(layers_[i], i + 1 < layers_.size() ? layers_[i + 1].qkv : head_, rows, stream);
  }
}

void MusicRows::run_whole(int64_t rows, int64_t reading, cudaStream_t stream) {
  WholeStep call = whole_.call();
  call.half = half_;
  call.music = true;
  call.rows = static_cast<int>(rows);
  call.reading = static_cast<int>(reading);
  call.positions = static_cast<int>(shape_.positions);
  call.text_positions = static_cast<int>(shape_.text);
  call.x = x_.mutable_data_ptr<float>();
  call.places = {place_.const_data_ptr<int32_t>(), position_.const_data_ptr<int32_t>()};
  call.text_last = text_last_.const_data_ptr<int32_t>();
  call.positions_read = attended_positions(rows, false) + attended_positions(reading, true);
  launch_whole_step(call, stream);
}

// Pointers of all layers, for the kernel that runs them in one go.
std::vector<WholeStepLayer> MusicRows::whole_step_layers() const {
  const auto norm = [](const Norm& of) {
    return RowNorm{floats_of(of.weight), floats_of(of.bias)};
  };
  std::vector<WholeStepLayer> table;
  for (const Layer& layer : layers_) {
    table.push_back({.qkv = layer.qkv.packed.const_data_ptr(),
                     .project = layer.project.packed.const_data_ptr(),
                     .expand = layer.expand.packed.const_data_ptr(),
                     .contract = layer.contract.packed.const_data_ptr(),
                     .cross_query = layer.cross_query.packed.const_data_ptr(),
                     .cross_project = layer.cross_project.packed.const_data_ptr(),
                     .norm_self = norm(layer.norm_self),
                     .norm_cross = norm(layer.norm_cross),
                     .norm_inner = norm(layer.norm_inner),
                     .keys = layer.keys.mutable_data_ptr(),
                     .values = layer.values.mutable_data_ptr(),
                     .text_keys = layer.text_keys.mutable_data_ptr(),
                     .text_values = layer.text_values.mutable_data_ptr()});
  }
  return table;
}

void MusicRows::finish(int64_t rows, cudaStream_t stream) {
  RowProduct head = normed(head_, rows, last_norm_, stream);
  head.output = RowOutput::store;
  head.out = logits_.mutable_data_ptr<float>();
  launch_row_product(head, stream);
}

int64_t MusicRows::weight_bytes() const {
  auto bytes = static_cast<int64_t>(head_.packed.nbytes());
  for (Layer layer : layers_)
    for (const Product* part : layer.products())
      bytes += static_cast<int64_t>(part->packed.nbytes());
  return bytes;
}

int64_t MusicRows::cache_bytes() const {
  int64_t bytes = 0;
  for (const Layer& layer : layers_)
    for (const at::Tensor* part : {&layer.keys, &layer.values, &layer.key_scales,
                                   &layer.value_scales, &layer.text_keys, &layer.text_values})
      if (part->defined()) bytes += static_cast<int64_t>(part->nbytes());
  return bytes;
}

}  // namespace tandem
#endif
