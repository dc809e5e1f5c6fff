#include "data/feed/feature_cache.h"

#include <atomic>

#include "data/corpus/parallel_rows.h"
#include "data/feed/clip_shape.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/signals.h"

namespace tandem {

CacheProgress fill_cache(const ClipIndex& index, const SpeechOptions& options, uint64_t recipe,
                         const std::string& path, int workers, const MakeFeatures& make,
                         const OnCacheProgress& on_progress) {
  ClipCache cache = ClipCache::open_for_writing(path);
  std::vector<int64_t> missing;
  for (int64_t row = 0; row < index.size(); ++row) {
    if (!cache.find(clip_cache_key(index[row], recipe))) missing.push_back(row);
  }
  CacheProgress progress{.total = index.size()};
  progress.reused = index.size() - static_cast<int64_t>(missing.size());
  std::atomic<int64_t> failed{0};
  const auto work = [&](int64_t i) {
    const int64_t row = missing[static_cast<size_t>(i)];
    try {
      const at::Tensor made = make(read_clip(index, row, options)).contiguous();
      cache.add(clip_cache_key(index[row], recipe), static_cast<int32_t>(made.size(0)),
                static_cast<int32_t>(made.size(1)), made.const_data_ptr<float>());
    } catch (const AudioError& error) {
      ++failed;
      log_debug("nothing cached of clip {}: {}", row, error.what());
    }
  };
  const auto look = [&](int64_t done) {
    progress.done = progress.reused + done;
    progress.failed = failed;
    if (on_progress) on_progress(progress);
    const StopRequest stop = stop_requested();
    if (stop == StopRequest::none) return;
    cache.flush();
    const bool interrupted = stop == StopRequest::interrupted;
    throw Error(interrupted ? ErrorKind::interrupted : ErrorKind::terminated,
                "stopped while making `" + path + "`; what was done is kept")
        .hint("the same command goes on from there");
  };
  for_rows(static_cast<int64_t>(missing.size()), std::max(1, workers), work, look);
  cache.flush();
  return progress;
}

std::string mel_cache_path(const std::string& index) { return index + ".mels"; }

CacheProgress cache_mels(const ClipIndex& index, const SpeechOptions& options,
                         const std::string& path, int workers, const OnCacheProgress& on_progress) {
  const auto make = [&](const Waves& clip) { return log_mel(clip, options.mel)[0]; };
  return fill_cache(index, options, mel_recipe(options), path, workers, make, on_progress);
}

}  // namespace tandem
