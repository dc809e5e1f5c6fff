// manifest.jsonl of a folder of speech: one object a line of text, what became of it. Lines are
// added as they are done, in any order; `finish` puts them in the order of the texts. A line that a
// killed run left half written is not read.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "generate/line_journal.h"

namespace tandem {

struct ManifestEntry {
  std::string id, text, normalised, language, voice;
  uint64_t seed = 0;        // `tandem synthesize --text … --seed …` says the same again
  double seconds = 0;       // of sound
  double work_seconds = 0;  // from its turn to its end, beside others
  std::string status;       // "done", "failed"
  std::string error;        // of a failed one
  std::vector<std::string> troubles, other_troubles;  // kept and not kept attempts
  int pieces = 0, attempts = 0;                       // attempts over all pieces
  double silence_cut = 0;                             // seconds
  std::string file;                                   // beside the manifest
  std::string recipe;                                 // of all that decides the sound
  double rtf() const { return seconds > 0 ? work_seconds / seconds : 0; }
};

std::string to_json_line(const ManifestEntry& entry);
// False when the line is no entry.
bool from_json_line(const std::string& line, ManifestEntry& entry);

class Manifest {
 public:
  // Reads what is there. Throws Error(io), also when another process writes into the folder.
  explicit Manifest(const std::filesystem::path& folder);

  // The last entry for that file, or nullptr.
  const ManifestEntry* find(const std::string& file) const;
  // Thread-safe.
  void add(const ManifestEntry& entry);
  // Only these files, in this order; entries added before are kept where they are named.
  void finish(const std::vector<std::string>& files);

 private:
  LineJournal journal_;
  mutable std::mutex mutex_;
  std::map<std::string, ManifestEntry> entries_;  // by file
};

}  // namespace tandem
