// How long a batch of clips takes to generate, told from a part of each. Every token reads what
// came before it, so that late ones take longer than early ones: the part is from the middle, where
// they take what they take on average.
//
//   whole clip = a few tokens at the start + the rest, each at what a token in the middle takes
//
// What a batch costs once (captions are read, the sound's first call) is in the few at the start.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tandem {

struct ClipExcerpt {
  int64_t whole = 0;   // tokens of a clip
  int64_t prompt = 0;  // that are there when the part begins; 0: all of it is measured
  int64_t tokens = 0, few = 0;
  bool is_whole() const { return prompt == 0; }
};

// Of clips that are hardly longer than the part, or are made in several windows: all of it.
ClipExcerpt excerpt_of(int64_t new_tokens, int64_t window_tokens);
// "100 of 1503 tokens, from the middle of a clip, scaled to all of it"; empty: all were measured.
std::string describe(const ClipExcerpt& excerpt);

struct ClipTimes {
  double seconds = 0;    // of a batch of whole clips
  double deviation = 0;  // as a share of it
  int64_t count = 0;     // measurements
};

// `make` generates a batch, `tokens` behind a prompt of `prompt`, and returns its seconds. The
// first is not counted, unless it is of whole clips and takes more than twice `seconds`; the others
// follow until those have passed, eight times at most, and twice where four times as long is enough
// for it.
ClipTimes time_clips(const ClipExcerpt& excerpt, double seconds,
                     const std::function<double(int64_t prompt, int64_t tokens)>& make);

}  // namespace tandem
