// What a folder lies on, how fast it is read when nothing of it is in memory, and whether
// checkpoints will fit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "observe/checks.h"

namespace tandem {

// Where the kernel tells about disks; elsewhere in tests.
struct StorageRoots {
  std::string sys = "/sys";
  std::string mounts = "/proc/self/mountinfo";
};

struct Storage {
  enum class Kind { ssd, hdd, virtual_disk, memory, overlay, network, unknown };
  Kind kind = Kind::unknown;
  std::string file_system;  // "ext4"; empty: not known
  std::string disk;         // "nvme0n1"; empty: none, or not to be seen from here
  std::string describe() const;
};

// Of an existing file or folder.
Storage storage_of(const std::string& path, const StorageRoots& roots = {});
Check check_storage_kind(const std::string& name, const Storage& storage);

// Bytes of a file: a sound, or a sound in a tar.
struct FileRange {
  std::string path;
  int64_t offset = 0, bytes = -1;  // -1: to the end
};

struct ReadSpeed {
  uint64_t bytes = 0;
  int64_t files = 0;
  double seconds = 0;
  int64_t cached = 0;  // files the kernel would not drop from memory: their part is not the disk's
  int64_t failed = 0;
  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

struct ReadTrial {
  uint64_t most_bytes = uint64_t{64} << 20;
  double most_seconds = 3;
  int threads = 8;  // that many files at a time, as the feed does
};

// Drops the files from the page cache (what other programs have there too, for these files only)
// and reads them.
ReadSpeed read_cold(const std::vector<FileRange>& files, const ReadTrial& trial = {});
// `audio_seconds`: of sound in the bytes read, for the times of real time; 0: not known.
Check check_read_speed(const ReadSpeed& speed, double audio_seconds = 0);

// Checkpoints of a run: `keep` of them, the best one, and the one being written.
struct CheckpointNeed {
  uint64_t parameters = 0;  // trained
  int64_t keep = 3;
  bool average = false;      // a moving average of the weights is saved too
  uint64_t bytes_there = 0;  // of checkpoints already in the folder, which are replaced
  uint64_t one() const;      // weights and two moments in float32, and the average
  uint64_t all() const;
};

struct FreeSpace {
  uint64_t available = 0, files = ~uint64_t{0};  // bytes and entries that may still be made
};
using AskSpace = std::function<FreeSpace(const std::string& folder)>;
FreeSpace free_space(const std::string& folder);  // throws Error(io)

// `folder` need not exist yet: the nearest folder above it is asked.
Check check_checkpoint_space(const std::string& folder, const CheckpointNeed& need,
                             const AskSpace& ask = free_space);

// Bytes of the checkpoints (step-*) in a run's folder.
uint64_t checkpoint_bytes_in(const std::string& folder);
// The nearest existing folder of a path.
std::string existing_folder(const std::string& path);

}  // namespace tandem
