// Clips that could not be used in a run: each counted once, by reason, and listed in a file as it
// is found. Too many of them stop the run, because then something else is wrong. Any thread may
// add.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tandem {

struct BadFileLimits {
  double warn_share = 0.05, stop_share = 0.20;
};

class BadFiles {
 public:
  // `list` is a TSV file (path, reason, sentence), made with the first bad clip; empty: no list.
  // `waits`: its folder is not there yet, or may be another run's; nothing is written before
  // `begin`.
  BadFiles(std::string list, int64_t clips, const BadFileLimits& limits, bool waits = false);

  void note_tried(int64_t clip);
  // Throws Error(data), with the counts and the list, when the share of bad clips passes the limit.
  // It is taken of the clips tried so far, but of 100 of them (or all, where there are fewer) at
  // least, so that the first bad file of a run is not all of it.
  void add(int64_t clip, const std::string& path, const std::string& reason,
           const std::string& sentence);

  // Listed and counted likewise, but no fault: the clip is whole, only not for this model. Limits
  // do not look at it.
  void leave_out(int64_t clip, const std::string& path, const std::string& reason,
                 const std::string& sentence);

  // Writes what was collected, without what the list has already.
  void begin();

  // Without those left out.
  int64_t total() const;
  std::map<std::string, int64_t> by_reason() const;
  std::string summary() const;  // "3 missing, 1 truncated"
  std::string advice() const;   // what to do about them, for a hint

  std::map<std::string, int64_t> left_out_by_reason() const;
  std::string summary_of_left_out() const;  // "4 too long"

 private:
  double share() const;
  void append(const std::string& path, const std::string& reason, const std::string& sentence);
  void write();
  const std::string list_;
  const BadFileLimits limits_;
  mutable std::mutex mutex_;
  std::vector<uint8_t> seen_;  // of each clip: 1 tried, 2 bad or left out
  int64_t tried_ = 0, bad_ = 0;
  std::map<std::string, int64_t> reasons_, left_out_;
  bool warned_ = false, begun_;
  std::ofstream file_;
  std::vector<std::string> unwritten_;  // lines
};

}  // namespace tandem
