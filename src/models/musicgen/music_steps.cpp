#include "models/musicgen/music_steps.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "nn/rows/rows_cpu.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr int64_t most_rows = 1024;  // of one pass; bounds its buffers

LayerNorm moved(const LayerNorm& norm, const at::Device& device) {
  return {norm.weight.to(device), norm.bias.to(device)};
}

// [out, in] -> [in, out]
at::Tensor turned(const std::vector<at::Tensor>& weights, const at::Device& device) {
  return at::cat(weights, 0).to(device).t().contiguous();
}

// Value by value, so that no result depends on where in a vector register it was computed.
template <class Function>
void apply(at::Tensor& x, Function function) {
  float* values = x.mutable_data_ptr<float>();
  at::parallel_for(0, x.numel(), 4096, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) values[i] = function(values[i]);
  });
}

}  // namespace

MusicStepWeights MusicStepWeights::make(const MusicDecoder& decoder, const at::Device& device) {
  MusicStepWeights made{.size = decoder.size};
  for (const at::Tensor& embedding : decoder.embeddings)
    made.embeddings.push_back(embedding.to(device));
  made.positions = MusicDecoder::sinusoids(decoder.size.positions, decoder.size.width).to(device);
  for (const MusicDecoder::Block& block : decoder.blocks) {
    made.blocks.push_back(
        {.norm_self = moved(block.norm_self, device),
         .norm_cross = moved(block.norm_cross, device),
         .norm_inner = moved(block.norm_inner, device),
         .qkv = turned({block.self.query, block.self.key, block.self.value}, device),
         .project = turned({block.self.output}, device),
         .cross_query = turned({block.cross.query}, device),
         .cross_keyvalue = turned({block.cross.key, block.cross.value}, device),
         .cross_project = turned({block.cross.output}, device),
         .expand = turned({block.expand}, device),
         .contract = turned({block.contract}, device)});
  }
  made.last_norm = moved(decoder.last_norm, device);
  made.heads = turned(decoder.heads, device);
  if (decoder.text_projection.weight.defined()) {
    made.text_projection = {decoder.text_projection.weight.to(device),
                            decoder.text_projection.bias.to(device)};
  }
  const MusicDecoderSize& size = decoder.size;
  made.zeros = at::zeros({std::max({3 * size.width, size.inner, made.heads.size(1)})},
                         at::TensorOptions(device).dtype(at::kFloat));
  return made;
}

MusicSteps::MusicSteps(const MusicStepWeights& weights, const std::vector<at::Tensor>& texts,
                       const Options& options)
    : weights_(weights),
      options_(options),
      clips_(static_cast<int64_t>(texts.size())),
      places_(options.guided ? 2 * clips_ : clips_) {
  const MusicDecoderSize& size = weights_.size;
  const auto floats = weights_.positions.options();
  const size_t kept_layers = options_.keep ? weights_.blocks.size() : 1;
  for (size_t i = 0; i < kept_layers; ++i) {
    keys_.push_back(at::zeros({places_, size.heads, options_.columns, size.head_width()}, floats));
    values_.push_back(at::zeros_like(keys_.back()));
  }
  read_texts(texts);
}

void MusicSteps::read_texts(const std::vector<at::Tensor>& texts) {
  const MusicDecoderSize& size = weights_.size;
  int64_t longest = 1;
  for (const at::Tensor& text : texts) {
    text_lengths_.push_back(text.defined() ? text.size(0) : 0);
    longest = std::max(longest, text_lengths_.back());
  }
  // Zeros where there is no caption: attention then gives zeros.
  const std::vector<int64_t> shape{clips_, size.heads, longest, size.head_width()};
  for (size_t i = 0; i < weights_.blocks.size(); ++i) {
    text_keys_.push_back(at::zeros(shape, weights_.positions.options()));
    text_values_.push_back(at::zeros_like(text_keys_.back()));
  }
  for (int64_t clip = 0; clip < clips_; ++clip) {
    const int64_t length = text_lengths_[static_cast<size_t>(clip)];
    if (length == 0) continue;
    at::Tensor states = texts[static_cast<size_t>(clip)];
    states = projected(states.contiguous());
    for (size_t i = 0; i < weights_.blocks.size(); ++i) {
      const at::Tensor both = product(states, weights_.blocks[i].cross_keyvalue)
                                  .view({length, 2, size.heads, size.head_width()});
      text_keys_[i][clip].narrow(1, 0, length).copy_(both.select(1, 0).transpose(0, 1));
      text_values_[i][clip].narrow(1, 0, length).copy_(both.select(1, 1).transpose(0, 1));
    }
  }
  if (!options_.batched) return;
  at::Tensor mask = at::zeros({clips_, 1, 1, longest}, at::kBool);
  for (int64_t clip = 0; clip < clips_; ++clip)
    mask[clip]
        .narrow(2, 0, std::max<int64_t>(text_lengths_[static_cast<size_t>(clip)], 1))
        .fill_(true);
  text_mask_ = mask.to(weights_.positions.device());
}

// By rows as all products are: a BLAS gives other bits on another number of threads.
at::Tensor MusicSteps::projected(const at::Tensor& states) const {
  const Linear& projection = weights_.text_projection;
  if (!projection.weight.defined()) return states;
  if (options_.batched) return projection(states);
  return row_product_cpu(states, projection.weight.t().contiguous(), projection.bias);
}

at::Tensor MusicSteps::product(const at::Tensor& x, const at::Tensor& weight) const {
  return options_.batched ? at::mm(x, weight) : row_product_cpu(x, weight, weights_.zeros);
}

at::Tensor MusicSteps::activated(at::Tensor x) const {
  const std::string& name = weights_.size.activation;
  if (name == "gelu") {
    if (options_.batched) return at::gelu(x);
    apply(x, [](float v) {
      return 0.5f * v * (1.f + std::erf(v * static_cast<float>(1 / std::numbers::sqrt2)));
    });
    return x;
  }
  if (name == "relu") return at::relu_(x);
  throw Error(
      ErrorKind::config,
      fmt::format("the decoder's activation_function is `{}`; expected `gelu` or `relu`", name));
}

// qkv [places * T, 3 * D] -> [places * T, D]
at::Tensor MusicSteps::attend(const at::Tensor& qkv, size_t layer, int64_t columns) {
  const int64_t heads = weights_.size.heads, width = weights_.size.head_width();
  const at::Tensor split = qkv.view({places_, columns, 3, heads, width});
  at::Tensor& keys = keys_[options_.keep ? layer : 0];
  at::Tensor& values = values_[options_.keep ? layer : 0];
  keys.narrow(2, position_, columns).copy_(split.select(2, 1).transpose(1, 2));
  values.narrow(2, position_, columns).copy_(split.select(2, 2).transpose(1, 2));
  if (!options_.batched) {
    std::vector<int64_t> places, positions;
    for (int64_t place = 0; place < places_; ++place) {
      for (int64_t t = 0; t < columns; ++t) {
        places.push_back(place);
        positions.push_back(position_ + t);
      }
    }
    const at::Tensor queries =
        split.select(2, 0).reshape({places_ * columns, heads, width}).contiguous();
    return row_attention_cpu(queries, keys, values, places, positions);
  }
  const int64_t known = position_ + columns;
  std::optional<at::Tensor> mask;
  if (columns > 1)
    mask = at::ones({columns, known}, qkv.options().dtype(at::kBool)).tril(position_);
  return at::scaled_dot_product_attention(split.select(2, 0).transpose(1, 2),
                                          keys.narrow(2, 0, known), values.narrow(2, 0, known),
                                          mask)
      .transpose(1, 2)
      .reshape({places_ * columns, heads * width});
}

// queries [B * T, D] -> [B * T, D]
at::Tensor MusicSteps::attend_text(const at::Tensor& queries, size_t layer, int64_t columns) const {
  const int64_t heads = weights_.size.heads, width = weights_.size.head_width();
  if (!options_.batched) {
    std::vector<int64_t> places, positions;
    for (int64_t clip = 0; clip < clips_; ++clip) {
      places.insert(places.end(), static_cast<size_t>(columns), clip);
      const int64_t last = std::max<int64_t>(text_lengths_[static_cast<size_t>(clip)] - 1, 0);
      positions.insert(positions.end(), static_cast<size_t>(columns), last);
    }
    return row_attention_cpu(queries.view({clips_ * columns, heads, width}), text_keys_[layer],
                             text_values_[layer], places, positions);
  }
  return at::scaled_dot_product_attention(
             queries.view({clips_, columns, heads, width}).transpose(1, 2), text_keys_[layer],
             text_values_[layer], text_mask_)
      .transpose(1, 2)
      .reshape({clips_ * columns, heads * width});
}

at::Tensor MusicSteps::trunk(const at::Tensor& tokens) {
  const int64_t columns = tokens.size(2), width = weights_.size.width;
  at::Tensor sum;
  for (size_t k = 0; k < weights_.embeddings.size(); ++k) {
    const at::Tensor part =
        at::embedding(weights_.embeddings[k], tokens.select(1, static_cast<int64_t>(k)));
    sum = sum.defined() ? sum + part : part;
  }
  sum = sum + weights_.positions.narrow(0, position_, columns);  // [B, T, D]
  if (options_.guided) sum = at::cat({sum, sum}, 0);
  at::Tensor x = sum.reshape({places_ * columns, width}).contiguous();
  at::Tensor captioned = x.narrow(0, 0, clips_ * columns);
  for (size_t i = 0; i < weights_.blocks.size(); ++i) {
    const MusicStepWeights::Block& block = weights_.blocks[i];
    const at::Tensor qkv = product(block.norm_self(x), block.qkv);
    x += product(attend(qkv, i, columns), block.project);
    const at::Tensor queries = product(block.norm_cross(captioned), block.cross_query);
    captioned += product(attend_text(queries, i, columns), block.cross_project);
    x += product(activated(product(block.norm_inner(x), block.expand)), block.contract);
  }
  return weights_.last_norm(x.view({places_, columns, width}).select(1, columns - 1).contiguous());
}

MusicLogits MusicSteps::advance(const at::Tensor& tokens) {
  const MusicDecoderSize& size = weights_.size;
  if (!options_.keep) position_ = 0;
  const int64_t columns = tokens.size(2), last = position_ + columns;
  if (last > size.positions) {
    throw Error(ErrorKind::config, fmt::format("column {} has no position: the model has {}",
                                               last - 1, size.positions))
        .hint("ask for fewer tokens, or for windows");
  }
  if (columns < 1 || last > options_.columns) {
    throw Error(ErrorKind::internal, fmt::format("{} columns behind {} of at most {}", columns,
                                                 position_, options_.columns));
  }
  const at::Tensor on_device = tokens.to(weights_.positions.device());
  const int64_t piece = options_.keep ? std::max<int64_t>(1, most_rows / places_) : columns;
  at::Tensor hidden;
  for (int64_t first = 0; first < columns; first += piece) {
    const int64_t count = std::min(piece, columns - first);
    hidden = trunk(on_device.narrow(2, first, count));
    position_ += count;
  }
  const at::Tensor logits =
      product(hidden, weights_.heads).view({places_, size.codebooks, size.vocabulary}).to(at::kCPU);
  if (!options_.guided) return {.cond = logits, .uncond = {}};
  return {.cond = logits.narrow(0, 0, clips_), .uncond = logits.narrow(0, clips_, clips_)};
}

}  // namespace tandem
