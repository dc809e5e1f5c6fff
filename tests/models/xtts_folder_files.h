// Small XTTS folders, complete in their files but not in their tensors.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_writing.h"
#include "models/xtts/xtts_config.h"
#include "support/temporary_folder.h"

namespace tandem::tests {

// A vocabulary with [STOP] = 0 and [START] = 3.
inline std::string small_vocabulary() {
  std::string added;
  for (const auto& [id, token] : {std::pair{"0", "[STOP]"}, {"1", "[UNK]"}, {"3", "[START]"}}) {
    added += std::string(added.empty() ? "" : ",") + R"({"id":)" + id + R"(,"content":")" + token +
             R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)" +
             R"("special":true})";
  }
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)" + added +
         R"(],"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,)" +
         R"("decoder":null,"model":{"type":"BPE","dropout":null,"unk_token":"[UNK]",)" +
         R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)" +
         R"("vocab":{"[STOP]":0,"[UNK]":1,"a":2,"[START]":3,"b":5},"merges":[]}})";
}

inline at::Tensor waves(std::vector<int64_t> shape, double step = 0.37) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return (at::arange(count, at::kFloat) * step).sin().reshape(shape);
}

// Tensors of every kind a model has, under our names.
inline std::map<std::string, at::Tensor> some_of_xtts() {
  const std::string decoder = "hifigan_decoder.waveform_decoder.",
                    encoder = "hifigan_decoder.speaker_encoder.";
  return {{"gpt.mel_embedding.weight", waves({6, 4})},
          {"gpt.conditioning_encoder.init.weight", waves({4, 8, 1}, 0.5)},
          {decoder + "ups.0.weight", waves({3, 2, 4}, 0.7)},
          {decoder + "ups.0.bias", waves({2})},
          {decoder + "resblocks.0.convs1.0.weight", waves({2, 2, 3}, 0.9)},
          {decoder + "conv_post.weight", waves({1, 2, 7}, 0.2)},
          {encoder + "bn1.weight", waves({3})},
          {encoder + "bn1.running_mean", waves({3}, 0.1)},
          {encoder + "bn1.running_var", waves({3}, 0.1).abs() + 1},
          {"mel_stats", waves({8}).abs() + 1}};
}

inline void write_tensors(const std::filesystem::path& path,
                          const std::map<std::string, at::Tensor>& tensors) {
  std::map<std::string, TensorToWrite> list;
  for (const auto& [name, tensor] : tensors) list.emplace(name, TensorToWrite::of(tensor));
  write_safetensors(path, list, {});
}

inline void write_state(const std::filesystem::path& path, const std::string& prefix,
                        const std::map<std::string, at::Tensor>& tensors) {
  std::vector<PthItem> items;
  for (const auto& [name, tensor] : tensors)
    items.push_back({.path = {"model", prefix + name}, .value = TensorToWrite::of(tensor)});
  write_pth(path, items);
}

inline void write_settings(const TestFolder& folder) {
  XttsConfig config = xtts_preset("tiny");
  config.gpt.start_text_token = config.gpt.stop_text_token = config.gpt.text_tokens = -1;
  folder.write("config.json", format_xtts_config(config));
  folder.write("vocab.json", small_vocabulary());
}

}  // namespace tandem::tests
