// The voices of one model, each made once: from recordings, the folder's speakers, or a saved file.
// A voice is kept until one of its files changes (size or time of change). Thread-safe: of several
// threads that want the same new voice one makes it and the others wait.
#pragma once

#include <future>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "models/xtts/voice.h"
#include "models/xtts/xtts.h"
#include "tandem/synthesizer.h"

namespace tandem {

// Throws Error(usage) unless it names exactly one source.
void check_voice_choice(const VoiceChoice& choice);
// Everything that decides how the voice sounds, in words; files by size and time of change.
std::string voice_recipe(const VoiceChoice& choice);
// A file's path, size and time of change.
std::string file_state(const std::string& path);

class VoiceStore {
 public:
  // The model must outlive this. `speakers_file` may be empty. At most `room` voices are kept.
  VoiceStore(const Xtts& model, std::filesystem::path speakers_file, size_t room = 1024);

  // Throws Error(usage), Error(io), Error(data): a speaker that is not there with the nearest
  // names, recordings that cannot be used, a voice of another model.
  Voice get(const VoiceChoice& choice);
  std::vector<std::string> speakers();
  uint64_t made() const;  // voices made or read so far

 private:
  XttsVoiceOptions options_of(const VoiceChoice& choice) const;
  Voice make(const VoiceChoice& choice);
  Voice named(const std::string& speaker);
  const std::map<std::string, Voice>& named_voices();

  const Xtts& model_;
  std::filesystem::path speakers_file_;
  size_t room_;
  std::once_flag speakers_once_;
  std::map<std::string, Voice> speakers_;

  mutable std::mutex mutex_;
  struct Kept {
    std::string recipe;
    std::shared_future<Voice> voice;
  };
  std::list<Kept> kept_;  // the last used first
  uint64_t made_ = 0;
};

}  // namespace tandem
