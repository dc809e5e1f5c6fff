// The GPT of GptStep written plainly in float32 with autograd, one sequence at a time: what the
// fused pass is judged by. And weights and batches to try both with.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <string>
#include <vector>

#include "nn/gpt_step/gpt_step.h"

namespace tandem {

struct PlainGptSize {
  int64_t layers = 3, width = 128, heads = 2, text_tokens = 61, audio_tokens = 37;
  int64_t text_positions = 420, audio_positions = 620;
};

inline GptStepOptions small_options() {
  GptStepOptions options;
  options.most_places = 1400;
  options.most_rows = 6;
  options.longest = 430;
  options.latents = 32;
  options.start_text = 1;
  options.stop_text = 0;
  options.start_audio = 35;
  options.stop_audio = 36;
  options.text_loss_weight = 0.1;
  options.tune = false;
  return options;
}

inline at::Tensor step_number(int64_t step) {
  return at::full({}, step, at::TensorOptions(at::kCUDA).dtype(at::kLong));
}

using NamedWeights = std::vector<std::pair<std::string, TrainedWeight*>>;

inline NamedWeights weights_by_name(GptStepWeights& w) {
  NamedWeights out = {
      {"text_embedding", &w.text_embedding},       {"audio_embedding", &w.audio_embedding},
      {"text_positions", &w.text_positions},       {"audio_positions", &w.audio_positions},
      {"last_norm_weight", &w.last_norm_weight},   {"last_norm_bias", &w.last_norm_bias},
      {"final_norm_weight", &w.final_norm_weight}, {"final_norm_bias", &w.final_norm_bias},
      {"text_head_weight", &w.text_head_weight},   {"text_head_bias", &w.text_head_bias},
      {"audio_head_weight", &w.audio_head_weight}, {"audio_head_bias", &w.audio_head_bias}};
  for (size_t i = 0; i < w.blocks.size(); ++i) {
    GptStepBlock& b = w.blocks[i];
    const std::string layer = std::to_string(i) + ".";
    for (const auto& [name, weight] : NamedWeights{{"norm1_weight", &b.norm1_weight},
                                                   {"norm1_bias", &b.norm1_bias},
                                                   {"qkv_weight", &b.qkv_weight},
                                                   {"qkv_bias", &b.qkv_bias},
                                                   {"project_weight", &b.project_weight},
                                                   {"project_bias", &b.project_bias},
                                                   {"norm2_weight", &b.norm2_weight},
                                                   {"norm2_bias", &b.norm2_bias},
                                                   {"expand_weight", &b.expand_weight},
                                                   {"expand_bias", &b.expand_bias},
                                                   {"contract_weight", &b.contract_weight},
                                                   {"contract_bias", &b.contract_bias}})
      out.emplace_back(layer + name, weight);
  }
  return out;
}

inline GptStepWeights random_gpt_weights(const PlainGptSize& size, uint64_t seed) {
  at::manual_seed(seed);
  const auto make = [](at::IntArrayRef shape, double deviation, double mean = 0) {
    const auto options = at::TensorOptions(at::kCUDA);
    return TrainedWeight{(at::randn(shape, options) * deviation + mean).to(at::kBFloat16),
                         at::zeros(shape, options)};
  };
  const int64_t d = size.width;
  GptStepWeights w;
  w.heads = size.heads;
  w.text_embedding = make({size.text_tokens, d}, 0.5);
  w.audio_embedding = make({size.audio_tokens, d}, 0.5);
  w.text_positions = make({size.text_positions, d}, 0.3);
  w.audio_positions = make({size.audio_positions, d}, 0.3);
  const double small = 0.7 / std::sqrt(static_cast<double>(d));
  for (int64_t i = 0; i < size.layers; ++i) {
    GptStepBlock b;
    b.norm1_weight = make({d}, 0.2, 1);
    b.norm2_weight = make({d}, 0.2, 1);
    b.norm1_bias = make({d}, 0.1);
    b.norm2_bias = make({d}, 0.1);
    b.qkv_weight = make({d, 3 * d}, 1.5 * small);
    b.qkv_bias = make({3 * d}, 0.1);
    b.project_weight = make({d, d}, small);
    b.project_bias = make({d}, 0.1);
    b.expand_weight = make({d, 4 * d}, small);
    b.expand_bias = make({4 * d}, 0.1);
    b.contract_weight = make({4 * d, d}, small / 2);
    b.contract_bias = make({d}, 0.1);
    w.blocks.push_back(b);
  }
  w.last_norm_weight = make({d}, 0.2, 1);
  w.last_norm_bias = make({d}, 0.1);
  w.final_norm_weight = make({d}, 0.2, 1);
  w.final_norm_bias = make({d}, 0.1);
  w.text_head_weight = make({size.text_tokens, d}, small);
  w.text_head_bias = make({size.text_tokens}, 0.1);
  w.audio_head_weight = make({size.audio_tokens, d}, small);
  w.audio_head_bias = make({size.audio_tokens}, 0.1);
  return w;
}

// Rows of the given lengths (text, codes); every third row has a slice that is not learned.
struct TriedBatch {
  std::vector<int64_t> texts, sounds;
  GptStepBatch batch;
};

inline TriedBatch random_gpt_batch(const PlainGptSize& size, const GptStepOptions& options,
                                   std::vector<int64_t> texts, std::vector<int64_t> sounds,
                                   int64_t tail, uint64_t seed) {
  at::manual_seed(seed);
  const auto rows = static_cast<int64_t>(texts.size());
  const int64_t longest_text = *std::max_element(texts.begin(), texts.end()) + 1;
  const int64_t longest_sound = *std::max_element(sounds.begin(), sounds.end()) + 2;
  const auto numbers = at::TensorOptions(at::kLong);
  TriedBatch out{texts, sounds, {}};
  GptStepBatch& b = out.batch;
  b.latents = at::randn({rows, options.latents, size.width}, at::TensorOptions(at::kCUDA));
  b.text = at::randint(0, size.text_tokens, {rows, longest_text}, numbers).to(at::kCUDA);
  b.codes = at::randint(0, size.audio_tokens, {rows, longest_sound}, numbers).to(at::kCUDA);
  b.text_lengths = at::tensor(texts, numbers).to(at::kCUDA);
  b.code_lengths = at::tensor(sounds, numbers).to(at::kCUDA);
  at::Tensor slice = at::zeros({rows, 2}, numbers);
  double learned_text = 0, learned_audio = 0;
  b.places = tail;
  for (int64_t i = 0; i < rows; ++i) {
    const auto at = static_cast<size_t>(i);
    b.places += gpt_step_places(options.latents, texts[at], sounds[at], options.reads_stop);
    if (texts[at] + sounds[at] == 0) continue;
    if (i % 3 == 0) slice[i][0] = sounds[at] / 4, slice[i][1] = sounds[at] / 2;
    learned_text += static_cast<double>(texts[at] + 1);
    learned_audio +=
        static_cast<double>(sounds[at] + 4 - (i % 3 == 0 ? sounds[at] / 2 - sounds[at] / 4 : 0));
  }
  b.slice = slice.to(at::kCUDA);
  b.whole = at::tensor({learned_text, learned_audio}, at::kFloat).to(at::kCUDA);
  return out;
}

struct PlainPass {
  at::Tensor losses, hits;  // [2]
  std::map<std::string, at::Tensor> gradients;
  at::Tensor latents_gradient;
};

// `masks`: those of GptStep::dropout_mask, or none.
inline PlainPass plain_gpt_pass(GptStepWeights& weights, const GptStepOptions& options,
                                const TriedBatch& tried, const std::vector<at::Tensor>& masks,
                                double scale) {
  std::map<std::string, at::Tensor> leaf;
  std::vector<at::Tensor> leaves;
  for (const auto& [name, weight] : weights_by_name(weights)) {
    leaf[name] = weight->weight.to(at::kFloat).detach().requires_grad_(true);
    leaves.push_back(leaf[name]);
  }
  const GptStepBatch& b = tried.batch;
  const at::Tensor latents = b.latents.detach().clone().requires_grad_(true);
  leaves.push_back(latents);
  const int64_t width = latents.size(2), head = width / weights.heads;
  const at::Tensor whole = b.whole.cpu(), slice = b.slice.cpu();
  const auto fixed = [&](int64_t id) { return at::full({1}, id, b.text.options()); };
  at::Tensor losses[2] = {at::zeros({}, latents.options()), at::zeros({}, latents.options())};
  double hits[2] = {0, 0};
  int64_t place = 0;
  for (int64_t row = 0; row < latents.size(0); ++row) {
    const int64_t words = tried.texts[static_cast<size_t>(row)];
    const int64_t sounds = tried.sounds[static_cast<size_t>(row)];
    if (words + sounds == 0) continue;
    const at::Tensor text = b.text[row].narrow(0, 0, words);
    const at::Tensor codes = b.codes[row].narrow(0, 0, sounds);
    const at::Tensor stop = fixed(options.stop_audio);
    std::vector<at::Tensor> read = {fixed(options.start_text), text};
    if (options.reads_stop) read.push_back(fixed(options.stop_text));
    const at::Tensor text_in = at::cat(read);
    const at::Tensor audio_in = at::cat({fixed(options.start_audio), codes, stop, stop, stop});
    at::Tensor x = at::cat({latents[row],
                            at::embedding(leaf["text_embedding"], text_in) +
                                leaf["text_positions"].narrow(0, 0, text_in.size(0)),
                            at::embedding(leaf["audio_embedding"], audio_in) +
                                leaf["audio_positions"].narrow(0, 0, audio_in.size(0))});
    const int64_t count = x.size(0);
    const auto masked = [&](const at::Tensor& y, size_t mask) {
      return masks.empty() ? y : y * masks[mask].narrow(0, place, count);
    };
    const auto norm = [&](const at::Tensor& y, const std::string& name) {
      return at::layer_norm(y, {width}, leaf[name + "_weight"], leaf[name + "_bias"]);
    };
    x = masked(x, 0);
    for (size_t i = 0; i < weights.blocks.size(); ++i) {
      const std::string layer = std::to_string(i) + ".";
      const auto product = [&](const at::Tensor& y, const std::string& name) {
        return at::addmm(leaf[layer + name + "_bias"], y, leaf[layer + name + "_weight"]);
      };
      const auto qkv = product(norm(x, layer + "norm1"), "qkv")
                           .view({count, 3, weights.heads, head})
                           .permute({1, 2, 0, 3})
                           .unbind(0);
      const at::Tensor future = at::ones({count, count}, x.options().dtype(at::kBool)).triu(1);
      const at::Tensor scores =
          at::matmul(qkv[0], qkv[1].transpose(1, 2)) / std::sqrt(static_cast<double>(head));
      const at::Tensor attended =
          at::matmul(at::softmax(scores.masked_fill(future, -INFINITY), -1), qkv[2])
              .transpose(0, 1)
              .reshape({count, width});
      x = x + masked(product(attended, "project"), 1 + 2 * i);
      x = x +
          masked(product(at::gelu(product(norm(x, layer + "norm2"), "expand"), "tanh"), "contract"),
                 2 + 2 * i);
    }
    x = norm(norm(x, "last_norm"), "final_norm");
    const auto judge = [&](int64_t first, at::Tensor targets, const std::string& name, int which,
                           int64_t hidden_from, int64_t hidden_to) {
      const at::Tensor logits = at::addmm(leaf[name + "_bias"], x.narrow(0, first, targets.size(0)),
                                          leaf[name + "_weight"].t());
      targets = targets.clone();
      targets.narrow(0, hidden_from, hidden_to - hidden_from).fill_(-1);
      losses[which] =
          losses[which] + at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum, -1) /
                              whole[which].item<double>();
      hits[which] += (logits.argmax(1) == targets).sum().item<double>();
    };
    judge(options.latents, at::cat({text, fixed(options.stop_text)}), "text_head", 0, 0, 0);
    judge(options.latents + text_in.size(0), at::cat({codes, stop, stop, stop, stop}), "audio_head",
          1, slice[row][0].item<int64_t>(), slice[row][1].item<int64_t>());
    place += count;
  }
  const at::Tensor loss = (losses[0] * options.text_loss_weight + losses[1]) * scale;
  const auto found = torch::autograd::grad({loss}, leaves);
  PlainPass out;
  out.losses = at::stack({losses[0].detach(), losses[1].detach()});
  out.hits = at::tensor({hits[0], hits[1]}, at::kFloat);
  size_t next = 0;
  for (const auto& [name, weight] : weights_by_name(weights)) out.gradients[name] = found[next++];
  out.latents_gradient = found[next];
  return out;
}

}  // namespace tandem
