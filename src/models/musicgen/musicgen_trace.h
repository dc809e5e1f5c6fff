// One generation on the CPU in float32, with every intermediate under a fixed name, to be held
// against another implementation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "models/musicgen/music_draw.h"
#include "models/musicgen/musicgen.h"

namespace tandem {

struct MusicTraceRequest {
  std::vector<std::string> captions;       // a clip each
  std::vector<std::string> audio_prompts;  // files; none, one for all, or one a caption
  MusicDrawOptions draw;
  int64_t new_tokens = 0;
  bool hf_draws = false;  // see music_draw.h; counted otherwise
  uint64_t seed = 0;
};

// Shapes, B clips, S ids of the longest caption, K codebooks, V codes:
//   text_ids, text_mask [B, S] int64, padded on the right with 0 · text_states [B, S, width of the
//   text encoder], of pads too · logits_cond, logits_uncond (with guidance), logits_cfg [B, K, V]
//   of the first column drawn · tokens [B, K, columns] with the start column and the delay
//   pattern's pads · codes [B, K, frames] · wav [B, channels, samples]; with audio prompts
//   prompt_codes [B, K, P], of prompts padded on the left with silence to one length.
struct MusicTrace {
  NamedTensors tensors;
  Metadata metadata;
};

// Throws Error(config) when the model has too few positions; the model has a codec encoder where
// audio prompts are given.
MusicTrace trace_musicgen(const Musicgen& model, const MusicTraceRequest& request);

}  // namespace tandem
