// A folder that holds an XTTS model: Coqui's (model.pth or a trainer's best_model.pth, config.json,
// vocab.json, speakers_xtts.pth, dvae.pth, mel_stats.pth) or ours (model.safetensors, config.json,
// vocab.json, speakers.safetensors, dvae.safetensors). A single weights file stands for its folder.
// Of several weights ours come first, then model.pth, then the trainer's best and its latest.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "checkpoint/tensor_file.h"
#include "checkpoint/weights.h"
#include "models/xtts/xtts_config.h"

namespace tandem {

struct XttsFolder {
  std::filesystem::path path;
  XttsConfig config;  // with the text ids of the vocabulary filled in
  std::filesystem::path weights_file, vocabulary_file;
  std::filesystem::path speakers_file, dvae_file, mel_stats_file;  // empty: not there

  // Throws Error(io) that names the missing file and what a complete folder holds.
  static XttsFolder open(const std::filesystem::path& folder_or_file);

  // The open weights and the prefix under which the model's names start ("", "model/",
  // "model/xtts.").
  struct OpenWeights {
    std::unique_ptr<TensorFile> file;
    std::string prefix;
  };
  OpenWeights open_weights() const;
};

}  // namespace tandem
