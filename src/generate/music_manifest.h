// What became of every clip of a folder. Each job adds to a part of its own,
// `manifest.<shard>-of-<shards>.jsonl`, as clips are done; once the clips of all shards are there,
// whoever sees it writes manifest.jsonl and metadata.csv in the order of the captions and removes
// the parts. Entries hold nothing that differs from run to run (no times, no devices), so that the
// two files are the same however the work was split.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generate/captions.h"
#include "generate/line_journal.h"

namespace tandem {

struct ClipEntry {
  std::string id, text;
  std::string file;  // in audio_samples
  std::string audio_prompt;
  uint64_t seed = 0;
  std::string recipe;  // of all that decides the sound
  std::string status;  // "done", "failed"
  std::string error;   // of a failed one
  double seconds = 0;  // of sound
  int64_t channels = 0, sample_rate = 0;
  int64_t clipped = 0;   // samples beyond full scale that a 16-bit file could not keep
  int64_t bytes = 0;     // of the file
  std::string checksum;  // of the file
};

std::string to_json_line(const ClipEntry& entry);
// Nothing when the line is no entry.
std::optional<ClipEntry> clip_entry(const std::string& line);

// A file's sum as entries hold it; empty when it cannot be read.
std::string file_checksum(const std::filesystem::path& file);

struct ClipJob {
  std::filesystem::path folder;
  int64_t shard = 0, shards = 1;
  std::filesystem::path sounds() const { return folder / "audio_samples"; }
};

// A clip as it is to be: its file and recipe.
struct WantedClip {
  std::string file, recipe;
};

class ClipManifest {
 public:
  // Reads what is there. Throws Error(io), also when another process makes the same shard or shares
  // the folder otherwise.
  explicit ClipManifest(ClipJob job);

  bool locked() const { return journal_.locked(); }
  // The entry of a clip whose file is there as it was written, or nothing.
  std::optional<ClipEntry> whole(const WantedClip& clip) const;
  // Thread-safe.
  void add(const ClipEntry& entry);

  // Writes manifest.jsonl and metadata.csv when every clip of `wanted` (one a row of `captions`)
  // is done or failed, by this or other jobs; with `partly` also when some are not. Returns whether
  // it did.
  bool merge(const Captions& captions, const std::vector<WantedClip>& wanted, bool partly);

 private:
  struct Outcomes {
    std::optional<ClipEntry> done, failed;  // the last of each
  };
  using Entries = std::map<std::pair<std::string, std::string>, Outcomes>;  // by file and recipe

  static LineJournal own_part(const ClipJob& job);
  std::optional<ClipEntry> outcome(const Entries& entries, const WantedClip& clip) const;
  void write(const Captions& captions, const std::vector<std::optional<ClipEntry>>& outcomes) const;
  void remove_parts();

  ClipJob job_;
  LineJournal journal_;
  mutable std::mutex mutex_;
  Entries entries_;
};

}  // namespace tandem
