// Speakers where the dataset names none: guessed from the ids, by the rule of the originals.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/corpus/found_clip.h"

namespace tandem {

// The group 1 of `pattern` when it matches; else the part between `_` that is `p` and digits,
// starts with `spk` or `speaker`, or is all digits; else the first part. Throws Error(usage) for a
// pattern that is none.
class SpeakerRule {
 public:
  explicit SpeakerRule(const std::string& pattern = "");
  ~SpeakerRule();
  struct Guess {
    std::string name;
    bool marked;  // by the pattern, `p` and digits, `spk` or `speaker`: not only by its place
  };
  Guess speaker_of(const std::string& id) const;

 private:
  struct Pattern;
  std::unique_ptr<const Pattern> pattern_;
};

// Gives every clip without a speaker the name its id yields. A name that only one clip yields is no
// speaker but a part of a counter: where there are such, only marked names count, and only those of
// several clips. Returns how many speakers were named.
int64_t guess_speakers(std::vector<FoundClip>& clips, const SpeakerRule& rule);

}  // namespace tandem
