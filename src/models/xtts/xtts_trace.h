// One synthesis on the CPU in float32, with every intermediate under a fixed name, to be held
// against another implementation. Plain and slow on purpose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/safetensors.h"
#include "models/xtts/xtts_config.h"
#include "models/xtts/xtts_folder.h"
#include "text/clean.h"

namespace tandem {

struct TraceRequest {
  std::string text, language = "en";
  std::string voice;  // a recording
  CleanStyle style = CleanStyle::coqui;
  XttsSampling sampling;  // the folder's, or what was asked for
  bool greedy = false;
  uint64_t seed = 0;
  int64_t max_codes = 0;        // 0: as many as the model allows
  bool teacher_forced = false;  // also the losses of the recording's own codes
};

// Shapes, T text tokens, N codes (the stop token included where it came), D width:
//   text_ids [T] · audio_22k [1, samples] · mel_dvae [1, 80, frames] · mel_cond [1, 80, frames],
//   its pieces behind each other · audio_16k, mel_speaker [1, 64, frames] · gpt_cond_latent [1, 32,
//   D] · speaker_embedding [1, 512, 1] · dvae_codes [1, codes] · codes [N] · logits [N, audio
//   tokens], raw · latents [N, D] · wav [samples]; teacher-forced: loss_text, loss_mel [],
//   text_logits [1, text tokens, places], mel_logits [1, audio tokens, places].
// Metadata: normalised_text and what was asked for. A folder without a DVAE gives no dvae_codes,
// and is Error(io) when they are needed.
struct Trace {
  NamedTensors tensors;
  Metadata metadata;
};

Trace trace_xtts(const XttsFolder& folder, const TraceRequest& request);

}  // namespace tandem
