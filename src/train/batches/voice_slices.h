// The part of a clip that tells the model whose voice it is: where it lies depends on (seed, clip,
// epoch) and the clip's length alone.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tandem {

struct VoiceSlice {
  int64_t start = 0, length = 0;  // samples
  int64_t end() const { return start + length; }
};

struct VoiceSliceOptions {
  int64_t shortest = 0, longest = 0;  // samples
  bool fixed = false;                 // of the mean length, from the clip's first sample
  uint64_t seed = 0;
};

// Half the clip where the clip is shorter than the length that was drawn. Inside the clip, of one
// sample at least; nothing of a clip of none.
VoiceSlice draw_voice_slice(int64_t samples, const VoiceSliceOptions& options, uint64_t clip,
                            uint64_t epoch);

// Whose slice tells the voice of each row of a batch: the next row, from the last on to the first,
// with another clip of the same speaker; the row itself where there is none. `clips` and `speakers`
// are those of the rows; a row without a speaker is alone.
std::vector<size_t> voice_rows(const std::vector<int64_t>& clips,
                               const std::vector<std::string_view>& speakers);

// Samples of the longest slice a clip of at most `samples` can give.
int64_t longest_voice_slice(int64_t samples, const VoiceSliceOptions& options);

}  // namespace tandem
