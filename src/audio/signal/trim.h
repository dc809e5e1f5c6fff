// Silence cut off both ends. A frame is silent when its mean square lies `top_db` below that of the
// row's loudest frame; without margin this is librosa.effects.trim. A row of silence alone (no
// frame above -100 dBFS) gets length 0 and is named.
#pragma once

#include <cstdint>
#include <vector>

#include "audio/signal/waves.h"

namespace tandem {

struct TrimOptions {
  double top_db = 60;
  int64_t frame = 2048, hop = 512;  // samples
  int64_t margin = 0;               // samples kept on either side of what is not silent
};

struct Trimmed {
  Waves waves;
  std::vector<int64_t> starts;  // where each row began in the untrimmed one
  std::vector<int64_t> silent;  // rows with nothing left
};

// On CUDA it waits for the device: lengths live on the host.
Trimmed trim_silence(const Waves& waves, const TrimOptions& options);

// The same for training: a row of silence alone stays whole, as a step must see a row with a
// length.
Waves trim_ends(const Waves& waves, const TrimOptions& options);

// [begin, end) of one clip on the CPU.
struct Span {
  int64_t begin = 0, end = 0;
};
Span find_sound(const float* in, int64_t samples, const TrimOptions& options);

}  // namespace tandem
