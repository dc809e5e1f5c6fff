// Low-rank additions to XTTS's GPT: W + alpha / rank * A B for the four products of every block. W
// stands still, A and B learn. They are kept in a file of their own and added into W when a voice
// is exported. A starts as any layer does, B at 0: the voice starts as it was.
//
// A model struct as the others: `visit` lists A and B with their names, which are those of the
// products, `gpt.h.0.attn.c_attn.lora_a`, behind a prefix.
#pragma once

#include <ATen/core/TensorBody.h>

#include <filesystem>
#include <string>
#include <vector>

#include "models/xtts/xtts_gpt.h"

namespace tandem {

struct LoraAddition {
  at::Tensor a, b;  // [in, rank], [rank, out]
};

struct LoraBlock {
  LoraAddition qkv, project, expand, contract;
};

struct GptLora {
  struct Options {
    int64_t rank = 8;
    double alpha = 16;
  };
  Options options;
  int64_t width = 0;
  std::vector<LoraBlock> blocks;

  // Without tensors: what can be listed and counted.
  static GptLora sized(const XttsGptSize& size, const Options& options);
  static GptLora make(const XttsGptSize& size, const Options& options, uint64_t seed);
  // Names behind `prefix`. Throws Error(corrupt) for missing tensors or other shapes than `size`
  // and `options` have.
  static GptLora load(Weights& weights, const std::string& prefix, const XttsGptSize& size,
                      const Options& options);
  void list(const std::string& prefix, const ListTensor& tensor);
  void visit(const std::string& prefix, const VisitParameter& visit);

  double scale() const { return options.alpha / static_cast<double>(options.rank); }
  // W + scale A B, with gradients to A and B alone.
  at::Tensor effective(const at::Tensor& weight, const LoraAddition& addition) const;
  // The model with effective weights; all else is shared with `gpt`.
  XttsGpt applied_to(const XttsGpt& gpt) const;
  // For code that computes the gradient of the effective weight by itself: adds what follows from
  // it to `a_gradient` and `b_gradient`.
  void add_gradients(const LoraAddition& addition, const at::Tensor& weight_gradient,
                     at::Tensor& a_gradient, at::Tensor& b_gradient) const;
  // Writes the additions into the weights for good.
  void merge_into(XttsGpt& gpt) const;
};

// One file with names of model files (`gpt.gpt.h.0.attn.c_attn.lora_a`) and rank and alpha as
// metadata; written atomically. Reading throws Error(io), or Error(corrupt) for a file that is no
// such thing or does not fit `size`.
inline constexpr const char* lora_file = "lora.safetensors";
void write_lora(GptLora& lora, const std::filesystem::path& path);
GptLora read_lora(const std::filesystem::path& path, const XttsGptSize& size);

}  // namespace tandem
