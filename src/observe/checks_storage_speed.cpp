#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "observe/checks_storage.h"
#include "util/clock.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr size_t block_bytes = 1 << 20;
// 22 kHz in 16 bits: 1,100 times real time, more than one large GPU trains on.
constexpr double enough_a_second = 50e6;
// Less tells the time of opening files, not the disk's.
constexpr uint64_t enough_bytes = 8 << 20;
constexpr double enough_seconds = 1;

// One byte that is there without reading the disk.
bool is_cached(int file, int64_t offset) {
  char byte = 0;
  const iovec target{&byte, 1};
  return ::preadv2(file, &target, 1, offset, RWF_NOWAIT) == 1;
}

class ColdReader {
 public:
  ColdReader(const std::vector<FileRange>& files, const ReadTrial& trial)
      : files_(files), trial_(trial) {}

  ReadSpeed run() {
    const auto threads = static_cast<size_t>(std::max(1, trial_.threads));
    start_ = Clock::now();
    std::vector<std::thread> readers;
    for (size_t i = 0; i < std::min(threads, files_.size()); ++i)
      readers.emplace_back([this] { work(); });
    for (std::thread& reader : readers) reader.join();
    speed_.bytes = bytes_;
    speed_.seconds = seconds_since(start_);
    return speed_;
  }

 private:
  bool enough() const {
    return bytes_ >= trial_.most_bytes || seconds_since(start_) >= trial_.most_seconds;
  }

  void work() {
    std::vector<char> block(block_bytes);
    while (!enough()) {
      const size_t place = next_++;
      if (place >= files_.size()) return;
      read_one(files_[place], block);
    }
  }

  void read_one(const FileRange& range, std::vector<char>& block) {
    const int file = ::open(range.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      std::lock_guard lock(mutex_);
      ++speed_.failed;
      return;
    }
    ::posix_fadvise(file, range.offset, std::max<int64_t>(range.bytes, 0), POSIX_FADV_DONTNEED);
    const bool cached = is_cached(file, range.offset);
    int64_t at = range.offset;
    const int64_t end = range.bytes < 0 ? INT64_MAX : range.offset + range.bytes;
    bool failed = false;
    while (at < end && !enough()) {
      const auto wanted =
          static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(block.size()), end - at));
      const ssize_t got = ::pread(file, block.data(), wanted, at);
      failed = got < 0;
      if (got <= 0) break;
      at += got;
      bytes_ += static_cast<uint64_t>(got);
    }
    ::close(file);
    std::lock_guard lock(mutex_);
    ++speed_.files;
    speed_.cached += cached;
    speed_.failed += failed;
  }

  const std::vector<FileRange>& files_;
  const ReadTrial& trial_;
  Clock::time_point start_;
  std::atomic<size_t> next_ = 0;
  std::atomic<uint64_t> bytes_ = 0;
  std::mutex mutex_;
  ReadSpeed speed_;
};

}  // namespace

ReadSpeed read_cold(const std::vector<FileRange>& files, const ReadTrial& trial) {
  return ColdReader(files, trial).run();
}

Check check_read_speed(const ReadSpeed& speed, double audio_seconds) {
  Check check{.name = "reading data"};
  if (speed.bytes == 0) {
    check.verdict = Verdict::fail;
    check.found = fmt::format("none of {} files could be read", speed.files + speed.failed);
    check.advice = "check that the files are there and that you may read them";
    return check;
  }
  check.found =
      fmt::format("{:.0f} MB/s, {:.0f} files/s cold ({} of {} files in {})",
                  speed.bytes_per_second() / 1e6, static_cast<double>(speed.files) / speed.seconds,
                  format_bytes(speed.bytes), speed.files, format_seconds(speed.seconds));
  if (audio_seconds > 0)
    check.found += fmt::format(", {:.0f} times real time", audio_seconds / speed.seconds);
  if (speed.cached > 0)
    check.found += fmt::format("; {} of the files stayed in memory", speed.cached);
  const bool judged = speed.bytes >= enough_bytes || speed.seconds >= enough_seconds;
  if (!judged) check.found += "; too little to judge the disk by";
  // What came from memory says nothing about a slow disk, but a slow reading is slow all the same.
  if (judged && speed.bytes_per_second() < enough_a_second) {
    check.verdict = Verdict::warn;
    check.advice =
        "under 50 MB/s: a GPU may wait for data; copy the dataset to a local SSD, or use more "
        "--num-workers and --buffer-size 100";
  }
  return check;
}

}  // namespace tandem
