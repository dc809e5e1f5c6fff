// Features of clips kept on disk, so that they are computed once: one file of records, each a
// matrix of floats under the key of its clip and of how it was made. A clip whose content changed
// has another key, so its old record is never found. Records are appended and summed: what a killed
// process left half-written is cut off, the rest is used again.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tandem {

struct ClipView;

// The key of a clip's features: its content, and `recipe`, all that decides what is made of it.
uint64_t clip_cache_key(const ClipView& clip, uint64_t recipe);

class ClipCache {
 public:
  struct Entry {
    int64_t offset = 0;  // of the numbers in the file
    int32_t rows = 0, columns = 0;
    uint64_t sum = 0;
  };

  // Opens or makes the file. To be written by one process at a time. Throws Error(io).
  static ClipCache open_for_writing(const std::string& path);
  // Throws Error(io), or Error(corrupt) where the file is no cache.
  static ClipCache open(const std::string& path);
  ClipCache(ClipCache&& other) noexcept;
  ~ClipCache();

  std::optional<Entry> find(uint64_t key) const;
  size_t size() const { return entries_.size(); }
  // Any thread. Throws Error(io) with the disk's reason.
  void add(uint64_t key, int32_t rows, int32_t columns, const float* values);
  void flush();  // to the disk

  // Any thread. [rows, columns] into `out`, whose rows are `stride` apart. Throws Error(corrupt)
  // when the numbers are not those that were written.
  void read(const Entry& entry, float* out, int64_t stride) const;

 private:
  ClipCache(std::string path, int file, bool writable);
  void load();
  std::string path_;
  int file_ = -1;
  bool writable_ = false;
  int64_t end_ = 0;  // of the good records
  std::mutex mutex_;
  std::unordered_map<uint64_t, Entry> entries_;
};

}  // namespace tandem
