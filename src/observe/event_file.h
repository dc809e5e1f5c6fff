// The event file of one start of a run, for TensorBoard:
//
//   EventFile events(run / "tensorboard", first_step);
//   events.scalar(12, "train/loss", 3.25);
//
// A run that goes on opens a new file, whose start makes readers drop what the earlier files hold
// of steps after `first_step`. Events are appended; after a kill all but the last few seconds are
// there. Any thread may add.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

#include "observe/event_proto.h"
#include "util/clock.h"

namespace tandem {

// Length, checksum of the length, bytes, checksum of the bytes.
std::string framed_record(std::string_view bytes);

class EventFile {
 public:
  // Makes the folder. All throw Error(io) that names the file and says why.
  EventFile(const std::filesystem::path& folder, int64_t first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void scalar(int64_t step, std::string_view tag, double value);
  void text(int64_t step, std::string_view tag, std::string_view text);
  void image(int64_t step, std::string_view tag, const EventImage& image);
  void audio(int64_t step, std::string_view tag, const EventAudio& audio);

  // Adding flushes what is older than a few seconds; who has nothing to add calls this.
  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  void add(const std::string& event);
  void write_out();  // with the lock held

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::mutex mutex_;
  std::string waiting_;
  Clock::time_point flushed_ = Clock::now();
};

}  // namespace tandem
