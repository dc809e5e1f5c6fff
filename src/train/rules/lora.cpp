#include "train/rules/lora.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "checkpoint/safetensors.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {

namespace {

constexpr const char* file_prefix = "gpt.";

// Each product's weight with its addition.
template <class Block, class Visit>
void for_each_product(Block& block, const LoraBlock& addition, const Visit& visit) {
  visit(block.qkv_weight, addition.qkv);
  visit(block.project_weight, addition.project);
  visit(block.expand_weight, addition.expand);
  visit(block.contract_weight, addition.contract);
}

std::string metadata_value(const Metadata& metadata, const std::string& name,
                           const std::filesystem::path& path) {
  const auto found = metadata.find(name);
  if (found != metadata.end()) return found->second;
  throw Error(ErrorKind::corrupt,
              fmt::format("`{}` holds no low-rank additions: its metadata has no `{}`",
                          path.string(), name));
}

GptLora::Options read_options(const Metadata& metadata, const std::filesystem::path& path) {
  const std::string rank_text = metadata_value(metadata, "rank", path);
  const std::string alpha_text = metadata_value(metadata, "alpha", path);
  const auto rank = parse_int(rank_text);
  const auto alpha = parse_double(alpha_text);
  if (!rank || *rank < 1 || *rank > 1 << 20 || !alpha || !(*alpha > 0) || *alpha > 1e12) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` has rank `{}` and alpha `{}` in its metadata; expected a whole "
                            "number from 1 and a number above 0",
                            path.string(), rank_text, alpha_text));
  }
  return {.rank = *rank, .alpha = *alpha};
}

}  // namespace

GptLora GptLora::sized(const XttsGptSize& size, const Options& options) {
  GptLora lora{.options = options, .width = size.width};
  lora.blocks.resize(static_cast<size_t>(size.layers));
  return lora;
}

GptLora GptLora::make(const XttsGptSize& size, const Options& options, uint64_t seed) {
  GptLora lora = sized(size, options);
  lora.list(file_prefix, draw_from(seed));
  return lora;
}

GptLora GptLora::load(Weights& weights, const std::string& prefix, const XttsGptSize& size,
                      const Options& options) {
  GptLora lora = sized(size, options);
  lora.list(prefix, load_from(weights));
  weights.require_complete("low-rank additions to this GPT");
  return lora;
}

void GptLora::list(const std::string& prefix, const ListTensor& tensor) {
  const auto addition = [&](const std::string& product, LoraAddition& own, int64_t in,
                            int64_t out) {
    tensor(product + ".lora_a", own.a, {in, options.rank}, start_for(in));
    tensor(product + ".lora_b", own.b, {options.rank, out}, {});
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string name = fmt::format("{}gpt.h.{}", prefix, i);
    addition(name + ".attn.c_attn", blocks[i].qkv, width, 3 * width);
    addition(name + ".attn.c_proj", blocks[i].project, width, width);
    addition(name + ".mlp.c_fc", blocks[i].expand, width, 4 * width);
    addition(name + ".mlp.c_proj", blocks[i].contract, 4 * width, width);
  }
}

void GptLora::visit(const std::string& prefix, const VisitParameter& visit) {
  list(prefix, pass_to(visit));
}

at::Tensor GptLora::effective(const at::Tensor& weight, const LoraAddition& addition) const {
  return at::addmm(weight.detach(), addition.a, addition.b, /*beta=*/1, /*alpha=*/scale());
}

XttsGpt GptLora::applied_to(const XttsGpt& gpt) const {
  XttsGpt out = gpt;
  for (size_t i = 0; i < blocks.size(); ++i) {
    for_each_product(out.blocks.at(i), blocks[i],
                     [&](at::Tensor& weight, const LoraAddition& addition) {
                       weight = effective(weight, addition);
                     });
  }
  return out;
}

void GptLora::add_gradients(const LoraAddition& addition, const at::Tensor& weight_gradient,
                            at::Tensor& a_gradient, at::Tensor& b_gradient) const {
  const at::NoGradGuard no_grad;
  a_gradient.addmm_(weight_gradient, addition.b.t(), /*beta=*/1, /*alpha=*/scale());
  b_gradient.addmm_(addition.a.t(), weight_gradient, /*beta=*/1, /*alpha=*/scale());
}

void GptLora::merge_into(XttsGpt& gpt) const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < blocks.size(); ++i) {
    for_each_product(
        gpt.blocks.at(i), blocks[i], [&](at::Tensor& weight, const LoraAddition& addition) {
          const at::Tensor merged =
              effective(weight, {addition.a.to(weight.device()), addition.b.to(weight.device())});
          weight.copy_(merged);
        });
  }
}

void write_lora(GptLora& lora, const std::filesystem::path& path) {
  NamedTensors tensors;
  lora.visit(file_prefix, [&](const std::string& name, at::Tensor& tensor) {
    tensors.emplace_back(name, tensor.detach().to(at::kFloat));
  });
  const Metadata metadata{{"rank", std::to_string(lora.options.rank)},
                          {"alpha", fmt::format("{}", lora.options.alpha)}};
  write_file_atomically(path, format_safetensors(tensors, metadata));
}

GptLora read_lora(const std::filesystem::path& path, const XttsGptSize& size) {
  const SafetensorsFile file = read_safetensors(path);
  const GptLora::Options options = read_options(file.metadata, path);
  Weights weights(file.tensors, path.string());
  GptLora lora = GptLora::load(weights, file_prefix, size, options);
  const std::vector<std::string> untaken = weights.untaken();
  if (!untaken.empty()) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` holds `{}`, which this GPT of {} layers has no place for",
                            path.string(), untaken.front(), size.layers));
  }
  return lora;
}

}  // namespace tandem
