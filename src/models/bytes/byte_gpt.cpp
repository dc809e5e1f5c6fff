#include "models/bytes/byte_gpt.h"

#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem {

ByteGptSize byte_gpt_size(const std::string& name) {
  if (name == "tiny") return {.layers = 2, .width = 64, .heads = 4, .context = 64};
  if (name == "small") return {.layers = 4, .width = 128, .heads = 4, .context = 128};
  if (name == "normal") return {.layers = 6, .width = 256, .heads = 8, .context = 256};
  if (name == "big") return {.layers = 12, .width = 512, .heads = 8, .context = 512};
  throw Error(ErrorKind::config,
              fmt::format("model.size is `{}`; expected tiny, small, normal or big", name));
}

ByteGpt ByteGpt::make(const ByteGptSize& size, uint64_t seed) {
  ByteGpt model;
  model.size = size;
  model.byte_embedding = make_parameter(seed, "byte_embedding", {256, size.width}, 0.02);
  model.place_embedding = make_parameter(seed, "place_embedding", {size.context, size.width}, 0.02);
  for (int64_t i = 0; i < size.layers; ++i) {
    model.blocks.push_back(
        GptBlock::make(seed, fmt::format("blocks.{}", i), size.width, size.heads, size.layers));
  }
  model.final_norm = LayerNorm::make(seed, "final_norm", size.width);
  return model;
}

at::Tensor ByteGpt::logits(const at::Tensor& tokens) const {
  at::Tensor x =
      at::embedding(byte_embedding, tokens) + place_embedding.narrow(0, 0, tokens.size(1));
  for (const GptBlock& block : blocks) x = block(x);
  return at::linear(final_norm(x), byte_embedding);  // tied
}

at::Tensor ByteGpt::loss(const at::Tensor& tokens, const at::Tensor& targets) const {
  return at::cross_entropy_loss(logits(tokens).view({-1, 256}), targets.reshape({-1}));
}

void ByteGpt::visit(const VisitParameter& visit) {
  visit("byte_embedding", byte_embedding);
  visit("place_embedding", place_embedding);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i].visit(fmt::format("blocks.{}", i), visit);
  final_norm.visit("final_norm", visit);
}

}  // namespace tandem
