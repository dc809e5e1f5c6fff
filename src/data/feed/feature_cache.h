// Fills a cache with features of a corpus's clips: what is there already is left, so that a run
// that was cut off goes on.
#pragma once

#include <functional>
#include <string>

#include "data/feed/speech_batches.h"

namespace tandem {

struct CacheProgress {
  int64_t done = 0, total = 0;
  int64_t reused = 0, failed = 0;
};
using OnCacheProgress = std::function<void(const CacheProgress&)>;

// Samples of one clip, as the feed would give them (resampled, trimmed, of one loudness), to
// [rows, columns] float32 on the CPU. Any thread.
using MakeFeatures = std::function<at::Tensor(const Waves& clip)>;

// Clips that cannot be read are counted. Throws Error(io), and Error(interrupted | terminated)
// after what was done is safe.
CacheProgress fill_cache(const ClipIndex& index, const SpeechOptions& options, uint64_t recipe,
                         const std::string& path, int workers, const MakeFeatures& make,
                         const OnCacheProgress& on_progress);

// The cache of an index: "corpus.index" -> "corpus.index.mels".
std::string mel_cache_path(const std::string& index);

// The same mels as the feed makes of a clip on the CPU.
CacheProgress cache_mels(const ClipIndex& index, const SpeechOptions& options,
                         const std::string& path, int workers, const OnCacheProgress& on_progress);

}  // namespace tandem
