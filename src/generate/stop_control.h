// What keeps XTTS from going on after the sentence: how long a text may take, and how to tell that
// an attempt went wrong. Pure functions of codes, sound and text length.
//
// Note on the figures. The 92 demo prompts, one careful English speaker, take 1.2 to 2.9 codes a
// character (median 1.6, at 21.5 codes a second), use at most 37 % of the bound below, at least 3.5
// times the least, and pause for 0.2 s at most; a test holds that. The bound of 4 codes a character
// and 48 more (2.2 s) is meant to end only what has gone wrong. The limits were not tuned on speech
// of a trained XTTS model. Gibberish that is neither long, silent nor repeating is not recognised.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem {

// Most codes a piece of so many characters may take, at most `model_limit`.
int64_t code_bound(int64_t characters, int64_t model_limit);
// Fewer codes than this cannot have said it all.
int64_t code_least(int64_t characters);

// The longest run of codes in which each equals the one `period` before it.
struct Repetition {
  int64_t first = 0, codes = 0;  // where it begins, and its length
  int64_t period = 0;            // 1 to 24 codes
};
// Nothing for runs that speech has too: shorter than 0.75 s, or of fewer than three turns.
std::optional<Repetition> find_repetition(std::span<const int64_t> codes);

// Shortens long silence in sound that comes in pieces of any size: a pause of more than 1.2 s is
// cut to 0.6 s, and at the end 0.08 s is left. Silence is what lies 48 dB under the loudest 20 ms
// so far. What it does depends on the samples alone, not on how they came.
class SilenceCutter {
 public:
  using Sink = std::function<void(std::span<const float>)>;
  SilenceCutter(int sample_rate, Sink sink);
  void push(std::span<const float> samples);
  // The rest, without the silence at the end.
  void finish();

  // Seconds, before cutting: between sounds, and after the last one.
  double longest_pause() const;
  double tail_silence() const;
  double cut_seconds() const;

 private:
  bool next_is_silent();
  void give_pause();
  void give(size_t first, size_t count);
  int64_t samples_of(double seconds) const;
  int rate_;
  Sink sink_;
  size_t window_;             // samples judged together
  std::vector<float> held_;   // silence that may be cut, then samples not yet judged
  std::vector<float> ready_;  // for the sink, once a call
  size_t first_ = 0;          // of held_; what lies before it was given
  size_t silent_ = 0;         // after first_, judged silent
  int64_t longest_ = 0, tail_ = 0, cut_ = 0;
  double loudest_ = 0;  // mean square
};

// What went wrong with one attempt. The cost compares attempts: roughly codes that should not be
// there.
struct AttemptReport {
  std::vector<std::string> troubles;  // "too long", "too short", "repetition", "silence"
  double cost = 0;
};
struct AttemptFacts {
  std::span<const int64_t> codes;
  bool stopped = true;                         // by the model itself, not by a bound
  int64_t characters = 0;                      // of the text
  double longest_pause = 0, tail_silence = 0;  // seconds
  double codes_a_second = 21.5;
};
AttemptReport judge_attempt(const AttemptFacts& facts);

}  // namespace tandem
