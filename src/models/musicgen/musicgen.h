// A whole MusicGen model out of a folder as transformers' save_pretrained writes it or as it is
// published: config.json, generation_config.json, model.safetensors or its shards with
// model.safetensors.index.json, tokenizer.json.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/musicgen/encodec.h"
#include "models/musicgen/music_decoder.h"
#include "models/musicgen/musicgen_config.h"
#include "models/musicgen/t5_encoder.h"
#include "text/tokenizer.h"

namespace tandem {

struct MusicgenLoad {
  bool with_codec_encoder = false;  // for audio prompts and features
};

struct Musicgen {
  MusicgenConfig config;
  std::shared_ptr<const Tokenizer> tokenizer;  // null for random models
  T5Encoder text;
  MusicDecoder decoder;
  Encodec codec;

  // float32 on the CPU, whatever the file holds. Missing tensors are Error(corrupt) with their
  // names, unknown ones a note; a missing file is Error(io) that says what a whole folder holds.
  static Musicgen load(const std::filesystem::path& folder, const MusicgenLoad& what = {});
  // Random weights on the device of the open DeviceScope: "tiny", or the published sizes "small",
  // "medium" and "large"; "stereo-" before any. Throws Error(config) for others.
  static Musicgen make(const std::string& size, uint64_t seed);
  static MusicgenConfig config_of(const std::string& size);

  // Ids of a caption with </s>; cut to `longest` ids, </s> kept (0: not cut). An empty caption is
  // </s> alone. Throws Error(internal) without a tokenizer.
  std::vector<int64_t> text_ids(const std::string& caption, int64_t longest = 0) const;
};

// Trained numbers a model of this configuration has, weight norm folded, counted without making it.
struct MusicgenCounts {
  int64_t text = 0, decoder = 0, codec = 0;
};
MusicgenCounts count_parameters(const MusicgenConfig& config);

}  // namespace tandem
