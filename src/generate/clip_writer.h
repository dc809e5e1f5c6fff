// Threads that write clips beside the devices' work. A file appears whole or not at all; loudness
// is as the model gives it. 16-bit files (wav16, flac) hold [-1, 1): what lies beyond is cut off at
// full scale and counted; float32 files keep it.
//
// The queue before them is bounded. While it has room `put` returns at once; the seconds it had to
// wait are counted, and mean that the disk is slower than the devices.
#pragma once

#include <ATen/core/TensorBody.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "generate/music_manifest.h"
#include "util/bounded_queue.h"

namespace tandem {

struct ClipFormat {
  std::string name = "wav";  // wav (float32), wav16, flac
  int64_t rate = 32000;
  std::string ending() const { return name == "flac" ? ".flac" : ".wav"; }
};

// Writes `sound` [channels, samples] float32 on the CPU and fills in what an entry says of a file.
// Throws Error(io), and Error(data) for sound that is none (NaN, no samples).
void write_clip(const std::filesystem::path& folder, const ClipFormat& format,
                const at::Tensor& sound, ClipEntry& entry);

class ClipWriter {
 public:
  struct Options {
    std::filesystem::path folder;
    ClipFormat format;
    int64_t threads = 2;
    size_t capacity = 64;  // clips
    // From a thread of the writer, once a clip; its status is "done", or "failed" when its sound
    // cannot be written.
    std::function<void(ClipEntry)> written;
    // The disk failed, or `written` threw: nothing more is written.
    std::function<void(std::exception_ptr)> failed;
  };
  explicit ClipWriter(Options options);
  ~ClipWriter();  // as `finish`

  void put(ClipEntry entry, at::Tensor sound);
  void finish();  // until all is written
  QueueCounters counters() const { return queue_.counters(); }

 private:
  struct Item {
    ClipEntry entry;
    at::Tensor sound;
  };
  void work();

  Options options_;
  BoundedQueue<Item> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem
