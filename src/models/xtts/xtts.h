// A whole XTTS model in memory: float32 on the CPU as loaded. Immutable while it speaks; any number
// of threads may use it.
#pragma once

#include <ATen/core/TensorBody.h>

#include <filesystem>
#include <string>
#include <vector>

#include "models/xtts/conditioning.h"
#include "models/xtts/speaker_encoder.h"
#include "models/xtts/vocoder.h"
#include "models/xtts/xtts_config.h"
#include "models/xtts/xtts_folder.h"
#include "models/xtts/xtts_gpt.h"

namespace tandem {

struct Xtts {
  XttsConfig config;
  XttsGpt gpt;
  Conditioning conditioning;  // encoder and perceiver; its names start with `gpt.` in files
  Vocoder vocoder;
  SpeakerEncoder speaker_encoder;
  at::Tensor mel_stats;  // [80]

  // Throws Error(corrupt) that lists all missing tensors; unknown ones are a note in the log.
  static Xtts load(const XttsFolder& folder);
  // Random, from (seed, name). For tests, benchmarks and training from scratch.
  static Xtts make(const XttsConfig& config, uint64_t seed);
  void visit(const VisitParameter& visit);  // Coqui's names

 private:
  void check_fit(const std::string& source) const;  // parts and token ids with each other
};

// Trained numbers a model of this configuration has, counted without making it.
struct XttsCounts {
  int64_t gpt = 0;  // with conditioning encoder and perceiver
  int64_t vocoder = 0, speaker_encoder = 0;
};
XttsCounts count_parameters(const XttsConfig& config);

}  // namespace tandem
