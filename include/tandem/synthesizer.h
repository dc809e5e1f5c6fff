// Speech. `tandem synthesize` is a thin front of this; a program may call it as well:
//
//   configure_devices({});                                  // all GPUs; without it: the CPU
//   Synthesizer synthesizer("models/xtts_v2");
//   Speech speech = synthesizer.speak({.text = "Hello.", .language = "en",
//                                      .voice = {.files = {"me.wav"}}});
//
// Thread-safe: any number of threads may speak at once, and their texts share the devices' steps.
// The same text, voice, options and seed give the same samples whatever is spoken beside them.
//
// Note on stop control. XTTS now and then goes on after the sentence: gibberish, silence, a sound
// that repeats. Unless `compat_coqui` is set, punctuation that provokes it is dropped from the end
// of a piece, the length is bounded by the text's, long silence is shortened, and a piece that
// still went wrong is spoken again with another seed, up to `max_retries` times; the best attempt
// is kept. A streamed piece is heard before its end is known: it is bounded and its silence is
// shortened, but it is not spoken again. Nor is one without sampling: it would say the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem {

struct SynthesizerOptions {
  std::vector<std::string> devices = {};  // "/GPU:0"; empty: all configured ones, else the CPU
  std::string precision = "auto";         // auto | fp32 | tf32 | bf16 | fp16
  int64_t batch_size = 16;                // pieces of text spoken at once on one device
};

// One of files, speaker and saved. The rest says how recordings are read; unset: as the model's
// config.json says.
struct VoiceChoice {
  std::vector<std::string> files = {};  // recordings of one speaker
  std::string speaker = {};             // a name in the model's folder
  std::string saved = {};               // a file `tandem voice save` wrote
  std::optional<double> gpt_cond_len = {}, gpt_cond_chunk_len = {}, max_ref_len = {};  // seconds
  std::optional<bool> sound_norm_refs = {};
};

struct SpeechText {
  std::string text;
  std::string language = "en";
  VoiceChoice voice = {};
  uint64_t seed = 0;
  // Unset: what the model's config.json says.
  std::optional<double> temperature = {}, repetition_penalty = {}, top_p = {}, length_penalty = {};
  std::optional<int64_t> top_k = {};
  bool do_sample = true;  // false: always the likeliest code
  double speed = 1.0;
  std::optional<bool> enable_text_splitting = {};  // unset: on, but off under compat_coqui
  bool compat_coqui = false;                       // Coqui's cleaning, no stop control, no pauses
  int max_retries = 2;                             // of a piece that went wrong
  bool keep_latents = false;
  // Streaming: called in order while the text is spoken, on the thread that speaks it (the
  // caller's for `speak`). The pieces joined are Speech::samples. What it throws ends the speech.
  std::function<void(std::span<const float>)> on_sound = {};
  int64_t stream_chunk_size = 20, first_chunk_size = 8;  // codes
  std::shared_ptr<std::atomic<bool>> cancel = {};        // set it to give the text up
};

// One piece of the text, as it was spoken.
struct SpeechPiece {
  std::string text, normalised;
  std::vector<int64_t> text_ids, codes;
  uint64_t seed = 0;  // of the attempt that was kept
  int attempts = 1;
  std::string end;  // "stop": the model's own; "length": the bound
  // "too long", "too short", "repetition", "silence": of the attempt kept, and of the others.
  std::vector<std::string> troubles, other_troubles;
  int64_t first_sample = 0, samples = 0;
  double silence_cut = 0;      // seconds
  std::vector<float> latents;  // when kept: [latent_rows, width], a row a code and the stop token's
  int64_t latent_rows = 0;
};

struct Speech {
  std::vector<float> samples;
  int sample_rate = 24000;
  std::vector<SpeechPiece> pieces;
  double seconds = 0;              // of speaking, once the voice is ready
  double first_sound_seconds = 0;  // streamed only
  double sound_seconds() const { return static_cast<double>(samples.size()) / sample_rate; }
};

class Synthesizer {
 public:
  // Throws Error(io, corrupt, device, memory).
  explicit Synthesizer(const std::string& model_folder, const SynthesizerOptions& options = {});
  ~Synthesizer();  // texts still being spoken end with Error(interrupted)
  Synthesizer(const Synthesizer&) = delete;
  Synthesizer& operator=(const Synthesizer&) = delete;

  // Waits. Throws Error: usage (an option out of range, no voice), data (text, language or voice
  // that cannot be used), io, interrupted (cancelled), memory, device.
  Speech speak(const SpeechText& text);
  // Does not wait; the future throws the same.
  std::future<Speech> submit(SpeechText text);

  // Makes a voice ready, so that the first text need not wait for it. It is kept until its files
  // change.
  void prepare_voice(const VoiceChoice& voice);
  void save_voice(const VoiceChoice& voice, const std::string& path);

  std::vector<std::string> speakers() const;   // names in the model's folder
  std::vector<std::string> languages() const;  // codes
  std::vector<std::string> devices() const;    // "/GPU:0"
  int sample_rate() const;
  // Changes when the model's files or the precision do; for resuming.
  std::string identity() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
