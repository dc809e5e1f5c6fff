// Decoded sound of clips, kept in memory: a compressed file is decoded once, later epochs copy its
// samples, to the last bit. What does not fit is decoded each time; nothing kept is given up for
// it, because every epoch asks for every clip once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace tandem {

class KeptSounds {
 public:
  // `most_bytes` is a limit of all of a process together: several feeds share one memory.
  KeptSounds(int64_t clips, int64_t most_bytes);
  ~KeptSounds();
  KeptSounds(const KeptSounds&) = delete;
  KeptSounds& operator=(const KeptSounds&) = delete;

  // Any thread. False: it is not kept, and `out` is as it was.
  bool copy(int64_t clip, float* out) const;
  // Any thread; of several that keep one clip the first does.
  void keep(int64_t clip, const float* samples, int64_t count);

  bool full() const { return full_; }  // something did not fit
  int64_t bytes() const { return bytes_; }
  int64_t most_bytes() const { return most_bytes_; }

 private:
  struct Sound;
  const int64_t clips_, most_bytes_;
  const std::unique_ptr<std::atomic<Sound*>[]> sounds_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<bool> full_{false};
};

// What a limit in MB says; none: a quarter of the memory that is free now.
int64_t kept_sound_bytes(const std::optional<int64_t>& megabytes);

}  // namespace tandem
