#include "models/xtts/xtts_gpt.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "nn/recomputed.h"
#include "tandem/error.h"

namespace tandem {
namespace {

// x [B, T, in] times a weight stored [in, out].
at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::addmm(bias, x.reshape({-1, x.size(-1)}), weight)
      .view({x.size(0), x.size(1), weight.size(1)});
}

struct QueryKeyValue {
  at::Tensor query, key, value;  // [B, heads, T, D / heads]
};

QueryKeyValue split_heads(const XttsGptBlock& block, const at::Tensor& x, int64_t heads) {
  const int64_t batch = x.size(0), places = x.size(1), width = x.size(2);
  const auto parts = product(x, block.qkv_weight, block.qkv_bias)
                         .view({batch, places, 3, heads, width / heads})
                         .permute({2, 0, 3, 1, 4})
                         .unbind(0);
  return {parts[0], parts[1], parts[2]};
}

at::Tensor attend(const XttsGptBlock& block, const QueryKeyValue& in, const at::Tensor& mask,
                  bool causal) {
  const std::optional<at::Tensor> allowed = mask.defined() ? std::optional(mask) : std::nullopt;
  const at::Tensor attended =
      at::scaled_dot_product_attention(in.query, in.key, in.value, allowed, 0.0, causal);
  return product(attended.transpose(1, 2).flatten(2), block.project_weight, block.project_bias);
}

at::Tensor mlp(const XttsGptBlock& block, const at::Tensor& x) {
  const at::Tensor inner = at::gelu(product(x, block.expand_weight, block.expand_bias), "tanh");
  return product(inner, block.contract_weight, block.contract_bias);
}

// `branch` counts the draws of dropout.
at::Tensor pass(const XttsGptBlock& block, at::Tensor x, int64_t heads, const at::Tensor& mask,
                const CountedDropout& dropout, uint64_t branch) {
  const at::Tensor attended = attend(block, split_heads(block, block.norm_attention(x), heads),
                                     mask, /*causal=*/!mask.defined());
  x = x + dropout(attended, branch);
  return x + dropout(mlp(block, block.norm_mlp(x)), branch + 1);
}

std::vector<at::Tensor> weights_of(const XttsGptBlock& block) {
  return {block.norm_attention.weight,
          block.norm_attention.bias,
          block.qkv_weight,
          block.qkv_bias,
          block.project_weight,
          block.project_bias,
          block.norm_mlp.weight,
          block.norm_mlp.bias,
          block.expand_weight,
          block.expand_bias,
          block.contract_weight,
          block.contract_bias};
}

XttsGptBlock block_of(const std::vector<at::Tensor>& weights, XttsGptBlock like) {
  like.norm_attention.weight = weights[0], like.norm_attention.bias = weights[1];
  like.qkv_weight = weights[2], like.qkv_bias = weights[3];
  like.project_weight = weights[4], like.project_bias = weights[5];
  like.norm_mlp.weight = weights[6], like.norm_mlp.bias = weights[7];
  like.expand_weight = weights[8], like.expand_bias = weights[9];
  like.contract_weight = weights[10], like.contract_bias = weights[11];
  return like;
}

int64_t rows(const Weights& weights, const std::string& name, int64_t otherwise) {
  const Shape shape = weights.shape(name);
  return shape.empty() ? otherwise : shape[0];
}

}  // namespace

void XttsGpt::list(const std::string& prefix, const ListTensor& tensor) {
  const int64_t width = size.width;
  const TensorStart embedding{.deviation = 0.02};
  // GPT-2: products into the residual stream start smaller the deeper the network is.
  const TensorStart into_residual{.deviation =
                                      0.02 / std::sqrt(2.0 * static_cast<double>(size.layers))};
  const auto product_of = [&](const std::string& name, at::Tensor& weight, at::Tensor& bias,
                              int64_t in, int64_t out, const TensorStart& start) {
    tensor(name + ".weight", weight, {in, out}, start);
    tensor(name + ".bias", bias, {out}, {});
  };
  const auto norm = [&](const std::string& name, LayerNorm& layer) {
    tensor(name + ".weight", layer.weight, {width}, {.mean = 1});
    tensor(name + ".bias", layer.bias, {width}, {});
  };
  tensor(prefix + "text_embedding.weight", text_embedding, {size.text_tokens, width}, embedding);
  tensor(prefix + "mel_embedding.weight", audio_embedding, {size.audio_tokens, width}, embedding);
  tensor(prefix + "text_pos_embedding.emb.weight", text_positions,
         {size.max_text_tokens + 2, width}, embedding);
  tensor(prefix + "mel_pos_embedding.emb.weight", audio_positions,
         {size.max_audio_tokens + 3, width}, embedding);
  blocks.resize(static_cast<size_t>(size.layers));
  for (size_t i = 0; i < blocks.size(); ++i) {
    XttsGptBlock& block = blocks[i];
    const std::string name = fmt::format("{}gpt.h.{}", prefix, i);
    norm(name + ".ln_1", block.norm_attention);
    product_of(name + ".attn.c_attn", block.qkv_weight, block.qkv_bias, width, 3 * width,
               embedding);
    product_of(name + ".attn.c_proj", block.project_weight, block.project_bias, width, width,
               into_residual);
    norm(name + ".ln_2", block.norm_mlp);
    product_of(name + ".mlp.c_fc", block.expand_weight, block.expand_bias, width, 4 * width,
               embedding);
    product_of(name + ".mlp.c_proj", block.contract_weight, block.contract_bias, 4 * width, width,
               into_residual);
  }
  norm(prefix + "gpt.ln_f", last_norm);
  norm(prefix + "final_norm", final_norm);
  tensor(prefix + "text_head.weight", text_head.weight, {size.text_tokens, width},
         start_for(width));
  tensor(prefix + "text_head.bias", text_head.bias, {size.text_tokens}, {});
  tensor(prefix + "mel_head.weight", audio_head.weight, {size.audio_tokens, width},
         start_for(width));
  tensor(prefix + "mel_head.bias", audio_head.bias, {size.audio_tokens}, {});
}

XttsGpt XttsGpt::load(Weights& weights, const std::string& prefix, const XttsGptSize& size) {
  XttsGpt gpt;
  gpt.size = size;
  XttsGptSize& read = gpt.size;
  read.audio_tokens = rows(weights, prefix + "mel_embedding.weight", size.audio_tokens);
  if (const Shape shape = weights.shape(prefix + "text_embedding.weight"); shape.size() == 2)
    read.text_tokens = shape[0], read.width = shape[1];
  read.max_text_tokens =
      rows(weights, prefix + "text_pos_embedding.emb.weight", size.max_text_tokens + 2) - 2;
  read.max_audio_tokens =
      rows(weights, prefix + "mel_pos_embedding.emb.weight", size.max_audio_tokens + 3) - 3;
  read.layers = 0;
  while (weights.has(fmt::format("{}gpt.h.{}.ln_1.weight", prefix, read.layers))) ++read.layers;
  if (read.layers == 0) read.layers = 1;  // so that its names are in the list of what is missing
  if (read.heads < 1 || read.width % read.heads != 0) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}`: a GPT of width {} cannot have {} heads; expected a divisor",
                            weights.source(), read.width, read.heads))
        .hint("look at gpt_n_heads in config.json");
  }
  gpt.list(prefix, load_from(weights));
  return gpt;
}

XttsGpt XttsGpt::make(const XttsGptSize& size, uint64_t seed) {
  XttsGpt gpt;
  gpt.size = size;
  gpt.list("gpt.", draw_from(seed));
  return gpt;
}

void XttsGpt::visit(const std::string& prefix, const VisitParameter& visit) {
  list(prefix, pass_to(visit));
}

at::Tensor XttsGpt::hidden(const at::Tensor& inputs, const at::Tensor& valid,
                           const CountedDropout& dropout, bool recompute) const {
  at::Tensor mask;
  if (valid.defined()) {
    const int64_t places = inputs.size(1);
    mask =
        at::ones({places, places}, inputs.options().dtype(at::kBool).requires_grad(false)).tril() &
        valid.to(at::kBool).view({-1, 1, 1, places});
  }
  at::Tensor x = dropout(inputs, 0);
  uint64_t branch = 1;
  for (const XttsGptBlock& block : blocks) {
    const auto part = [=, heads = size.heads](const at::Tensor& in,
                                              const std::vector<at::Tensor>& weights) {
      return pass(block_of(weights, block), in, heads, mask, dropout, branch);
    };
    x = recompute ? recomputed(part, x, weights_of(block))
                  : pass(block, x, size.heads, mask, dropout, branch);
    branch += 2;
  }
  return final_norm(last_norm(x));
}

at::Tensor XttsGpt::hidden(const at::Tensor& inputs, Past& past) const {
  const bool first = past.keys.empty();
  past.keys.resize(blocks.size());
  past.values.resize(blocks.size());
  const int64_t places = inputs.size(1), before = first ? 0 : past.keys[0].size(2);
  at::Tensor mask;
  if (!first && places > 1) {
    mask = at::ones({places, before + places}, inputs.options().dtype(at::kBool)).tril(before);
  }
  at::Tensor x = inputs;
  for (size_t i = 0; i < blocks.size(); ++i) {
    QueryKeyValue in = split_heads(blocks[i], blocks[i].norm_attention(x), size.heads);
    if (!first) {
      in.key = at::cat({past.keys[i], in.key}, 2);
      in.value = at::cat({past.values[i], in.value}, 2);
    }
    past.keys[i] = in.key;
    past.values[i] = in.value;
    x = x + attend(blocks[i], in, mask, /*causal=*/first);
    x = x + mlp(blocks[i], blocks[i].norm_mlp(x));
  }
  return final_norm(last_norm(x));
}

at::Tensor XttsGpt::code_input(int64_t code, int64_t step) const {
  return (audio_embedding[code] + audio_positions[step]).view({1, 1, -1});
}

at::Tensor XttsGpt::prompt(const std::vector<int64_t>& text_ids,
                           const at::Tensor& conditioning) const {
  std::vector<int64_t> ids{size.start_text_token};
  ids.insert(ids.end(), text_ids.begin(), text_ids.end());
  ids.push_back(size.stop_text_token);
  const auto places = static_cast<int64_t>(ids.size());
  if (places > text_positions.size(0)) {
    throw Error(ErrorKind::data, fmt::format("the text has {} tokens; this model takes {} at most",
                                             text_ids.size(), text_positions.size(0) - 2))
        .hint("split it into shorter pieces");
  }
  for (const int64_t id : text_ids) {
    if (id >= 0 && id < text_embedding.size(0)) continue;
    throw Error(ErrorKind::data,
                fmt::format("text token {} is none of the model's {}", id, text_embedding.size(0)))
        .hint("vocab.json does not belong to these weights");
  }
  const at::Device device = text_embedding.device();
  const at::Tensor text = at::embedding(text_embedding, at::tensor(ids, at::kLong).to(device)) +
                          text_positions.narrow(0, 0, places);
  const at::Tensor start = audio_embedding[size.start_audio_token] + audio_positions[0];
  const at::Tensor latents = conditioning.to(text.options()).reshape({-1, text_embedding.size(1)});
  return at::cat({latents, text, start.unsqueeze(0)}).unsqueeze(0);
}

at::Tensor XttsGpt::latents(const std::vector<int64_t>& text_ids, const std::vector<int64_t>& codes,
                            const at::Tensor& conditioning) const {
  const at::Tensor before = prompt(text_ids, conditioning);
  if (codes.empty()) return before.new_empty({1, 0, before.size(2)});
  const auto count = static_cast<int64_t>(codes.size());
  if (count > audio_positions.size(0)) {
    throw Error(ErrorKind::data, fmt::format("{} codes are more than the model's {} positions",
                                             count, audio_positions.size(0)));
  }
  // The last code is only spoken, never read.
  const std::vector<int64_t> read(codes.begin(), codes.end() - 1);
  const at::Tensor ids = at::tensor(read, at::kLong).to(before.device());
  const at::Tensor audio =
      at::embedding(audio_embedding, ids) + audio_positions.narrow(0, 1, count - 1);
  return hidden(at::cat({before, audio.unsqueeze(0)}, 1)).narrow(1, before.size(1) - 1, count);
}

}  // namespace tandem
