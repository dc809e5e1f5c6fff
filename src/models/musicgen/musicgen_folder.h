// The files of a MusicGen folder, found and opened without loading them. The weights are
// model.safetensors or its shards, else pytorch_model.bin or its shards.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "checkpoint/tensor_file.h"
#include "models/musicgen/musicgen_config.h"

namespace tandem {

struct MusicgenFolder {
  std::filesystem::path path;
  MusicgenConfig config;
  std::vector<std::filesystem::path> weights_files;  // one, or the shards in their order
  std::filesystem::path weights_index;               // empty: one file
  std::filesystem::path tokenizer_file;

  // Whether config.json says it is any MusicGen, melody included. Throws nothing.
  static bool looks_like(const std::filesystem::path& folder);
  // Throws Error(io) that names the missing file and what a whole folder holds, and what
  // MusicgenConfig::read throws.
  static MusicgenFolder open(const std::filesystem::path& folder);

  // All shards as one file. A shard that is not there is Error(io).
  std::unique_ptr<TensorFile> open_weights() const;
};

}  // namespace tandem
