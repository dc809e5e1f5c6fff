// A small random XTTS model as a folder, and recordings to clone. It speaks noise, but speaks it as
// the real one does.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "audio/file/write_audio.h"
#include "checkpoint/safetensors.h"
#include "models/xtts/voice.h"
#include "models/xtts/xtts.h"
#include "support/temporary_folder.h"
#include "text/clean.h"

namespace tandem {

// Characters, a few merges, the languages' tokens; ids below 255.
inline std::string tiny_vocabulary() {
  nlohmann::json vocab = {{"[STOP]", 0}, {"[UNK]", 1}, {"[SPACE]", 2}};
  nlohmann::json added = nlohmann::json::array();
  int id = 3;
  const auto add_special = [&](const std::string& token, int number) {
    vocab[token] = number;
    added.push_back({{"id", number},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  };
  for (const char* token : {"[STOP]", "[UNK]", "[SPACE]"}) add_special(token, vocab[token]);
  add_special("[START]", 255);
  for (const Language& language : languages()) add_special("[" + language.code + "]", id++);
  for (const char c : std::string("abcdefghijklmnopqrstuvwxyz0123456789'.,!?;:-()")) {
    vocab[std::string(1, c)] = id++;
  }
  for (const char* token : {"th", "the", "in", "er"}) vocab[token] = id++;
  return nlohmann::json{{"version", "1.0"},
                        {"added_tokens", added},
                        {"normalizer", nullptr},
                        {"pre_tokenizer", {{"type", "Whitespace"}}},
                        {"post_processor", nullptr},
                        {"decoder", nullptr},
                        {"model",
                         {{"type", "BPE"},
                          {"unk_token", "[UNK]"},
                          {"vocab", vocab},
                          {"merges", {"t h", "th e", "i n", "e r"}}}}}
      .dump();
}

// model.safetensors, config.json, vocab.json, speakers.safetensors (Ana, Ben) under `name`.
inline std::string write_tiny_xtts(const TestFolder& folder, const std::string& name = "model",
                                   uint64_t seed = 1) {
  Xtts model = Xtts::make(xtts_preset("tiny"), seed);
  NamedTensors tensors;
  model.visit(
      [&](const std::string& key, at::Tensor& tensor) { tensors.emplace_back(key, tensor); });
  folder.write(name + "/model.safetensors", format_safetensors(tensors, {}));
  folder.write(name + "/config.json", format_xtts_config(model.config));
  folder.write(name + "/vocab.json", tiny_vocabulary());
  NamedTensors speakers;
  for (const char* speaker : {"Ana", "Ben"}) {
    const uint64_t own = static_cast<uint64_t>(speaker[0]);
    const std::string start = std::string(speaker) + "/";
    speakers.emplace_back(start + "gpt_cond_latent",
                          make_parameter(own, "latent", {1, 32, model.config.gpt.width}, 1.0));
    speakers.emplace_back(start + "speaker_embedding",
                          make_parameter(own, "speaker", {1, 512, 1}, 0.05));
  }
  folder.write(name + "/speakers.safetensors", format_safetensors(speakers, {}));
  return (folder / name).string();
}

// A buzz that moves a little, as a voice does.
inline std::string write_recording(const TestFolder& folder, const std::string& name,
                                   double seconds = 1.5, int channels = 1, int rate = 22050,
                                   double level = 0.3) {
  const auto frames = static_cast<int64_t>(seconds * rate);
  std::vector<float> samples;
  for (int64_t i = 0; i < frames; ++i) {
    const double t = static_cast<double>(i) / rate;
    const double pitch = 140 + 20 * std::sin(2 * std::numbers::pi * 3 * t);
    double value = 0;
    for (int k = 1; k < 8; ++k) value += std::sin(2 * std::numbers::pi * pitch * k * t) / k;
    for (int c = 0; c < channels; ++c) samples.push_back(static_cast<float>(level * value / 2));
  }
  const std::string path = (folder / name).string();
  write_wav(path, samples, channels, rate, SampleFormat::pcm16);
  return path;
}

}  // namespace tandem
