// Speaks one text: its pieces go to the engines together, are checked as they come back, spoken
// again where they went wrong, and joined in order. Runs on the thread that calls it.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "generate/speech_engine.h"
#include "generate/text_pieces.h"
#include "tandem/synthesizer.h"

namespace tandem {

struct PendingSpeech {
  std::future<SpeechResult> result;
  std::shared_ptr<void> place;  // counts as load of its engine while it lives
};
using SubmitPiece = std::function<PendingSpeech(SpeechRequest)>;

struct TextToSpeak {
  std::vector<TextPiece> pieces;
  Voice voice;
  XttsSampling sampling;
  bool greedy = false;
  bool stop_control = true;  // bounds, retries, silence cut, pauses between pieces
  uint64_t seed = 0;
  double speed = 1;
  int max_retries = 2;
  bool keep_latents = false;
  std::function<void(std::span<const float>)> on_sound = {};  // set: streamed
  int64_t stream_chunk_size = 20, first_chunk_size = 8;
  int64_t max_codes = 602;  // the model's
  int sample_rate = 24000;
  double codes_a_second = 21.5;
  size_t window = 16;  // pieces in the engines at once
  // Looked at every few milliseconds.
  std::function<bool()> given_up = [] { return false; };
};

// Throws Error(interrupted) when given up, and what the engine or on_sound throws.
Speech speak_text(const TextToSpeak& text, const SubmitPiece& submit);

}  // namespace tandem
