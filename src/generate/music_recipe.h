// What decides the sound of a clip, as a short sum: options, model, caption, seed, and the content
// of its audio prompt. Clips with equal sums are equal.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "generate/music_jobs.h"
#include "generate/music_manifest.h"

namespace tandem {

class ClipRecipes {
 public:
  explicit ClipRecipes(const MusicJobOptions& options);

  // The entry of a caption, before anything is made. Thread-safe; reads the audio prompt.
  ClipEntry planned(const Caption& caption);

 private:
  std::string prompt_sum(const std::string& path);

  uint64_t seed_;
  std::string ending_, common_;
  std::mutex mutex_;
  std::map<std::string, std::string> prompt_sums_;  // by path
};

}  // namespace tandem
