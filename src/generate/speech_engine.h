// Speaks many pieces of text at once on one device: requests share each step of the GPT, join when
// a place is free and leave when they are done (continuous batching). What a request says depends
// on its own text, voice, sampling and seed only, not on what is spoken beside it.
//
// Thread-safe. The engine has a thread of its own; callbacks run there and must be short.
#pragma once

#include <ATen/core/TensorBody.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/xtts/voice.h"
#include "models/xtts/xtts_config.h"

namespace tandem {

class LogicalDevice;
struct Xtts;

struct SpeechRequest {
  std::vector<int64_t> text_ids;  // without START and STOP
  Voice voice;
  XttsSampling sampling;
  bool greedy = false;    // the likeliest code after the repetition penalty
  uint64_t seed = 0;      // of this piece: equal seeds draw equally
  int64_t max_codes = 0;  // 0: as many as the model allows
  double speed = 1.0;
  // Streaming: sound as soon as it is final, in pieces of about `chunk_codes` codes, the first of
  // `first_chunk_codes`. The pieces joined are the whole.
  std::function<void(std::span<const float>)> on_sound;
  int64_t first_chunk_codes = 8, chunk_codes = 20;
  std::shared_ptr<std::atomic<bool>> cancel;  // set it to true to give the request up
  bool keep_latents = false;
};

enum class SpeechEnd { stop_token, max_codes, cancelled };

struct SpeechResult {
  std::vector<int64_t> codes;  // without the stop token
  SpeechEnd end = SpeechEnd::stop_token;
  std::vector<float> samples;      // at the model's output rate; also when streamed
  at::Tensor latents;              // [codes + stop, D] when kept
  double wait_seconds = 0;         // until its first step
  double first_sound_seconds = 0;  // from submit to the first piece (streamed only)
  double seconds = 0;              // from submit to the end
};

enum class SpeechPrecision { automatic, fp32, tf32, bf16, fp16 };  // automatic: fp16 on a GPU

struct SpeechEngineOptions {
  int64_t places = 16;  // requests spoken at the same time
  SpeechPrecision precision = SpeechPrecision::automatic;
  // Voices whose part of the prompt is kept instead of being computed for every text; negative: as
  // many as suit the places. The same samples in any case.
  int64_t kept_voices = -1;
};

// Where places are short, prompts are worth starting some at a time: one alone takes the GPU as
// long as several together.
struct PromptsWaiting {
  size_t places = 1, free = 0, waiting = 0;  // `waiting`: requests
  bool streams = false;                      // somebody listens to one that could start
  int64_t turns = 0;                         // that one has waited beside a free place
};
bool prompts_start(const PromptsWaiting& now);

struct SpeechEngineCounters {
  uint64_t requests = 0, codes = 0, steps = 0, captures = 0;
  uint64_t prompt_rows = 0;  // computed; those of a voice that is kept are not
  double busy_seconds = 0;
  uint64_t peak_places = 0;
};

class SpeechEngine {
 public:
  // The model must outlive the engine. Weights are copied to the device.
  SpeechEngine(const Xtts& model, LogicalDevice& device, const SpeechEngineOptions& options = {});
  ~SpeechEngine();  // waits for what is being spoken; what waits is given up with
                    // Error(interrupted)
  SpeechEngine(const SpeechEngine&) = delete;
  SpeechEngine& operator=(const SpeechEngine&) = delete;

  // The future throws Error: data (more text than the model takes), memory, device.
  std::future<SpeechResult> submit(SpeechRequest request);
  SpeechEngineCounters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
