// What a folder's manifest says of its clips, read as leniently as can be: only `file` must be
// there, and lines of other programs may say more. Parts of a run that is not finished
// (manifest.<shard>-of-<shards>.jsonl) count as well.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct ListedClip {
  std::string id, text, file, status, error, checksum;
  std::optional<double> seconds;
  std::optional<int64_t> channels, sample_rate;
};

struct ClipListing {
  bool there = false;                     // a manifest or a part of one
  std::vector<ListedClip> clips;          // the last line for each file, in order of the first
  std::vector<std::string> parts;         // file names of parts: the run is not finished
  bool finished = true;                   // false: run.json says that clips are still to be made
  int64_t bad_lines = 0;                  // that are no entry
  std::vector<std::string> listed_twice;  // files that manifest.jsonl gives to several clips
};

// Throws Error(io).
ClipListing read_clip_listing(const std::filesystem::path& folder);

}  // namespace tandem
