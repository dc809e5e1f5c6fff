#include "observe/diagnose/storage.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "observe/diagnose/thresholds.h"
#include "util/clock.h"

namespace tandem {
namespace {

uint64_t read_whole(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  thread_local std::vector<char> buffer(size_t{1} << 18);
  uint64_t all = 0;
  for (ssize_t got = 0; (got = read(file, buffer.data(), buffer.size())) > 0;)
    all += static_cast<uint64_t>(got);
  close(file);
  return all;
}

double rate_with(const std::vector<std::string>& files, int readers, double seconds,
                 uint64_t& bytes) {
  drop_from_cache(files);
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> all{0};
  const auto start = Clock::now();
  const auto work = [&] {
    for (size_t i = next++; i < files.size() && seconds_since(start) < seconds; i = next++)
      all += read_whole(files[i]);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < readers; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  bytes = all;
  const double passed = seconds_since(start);
  return passed > 0 ? static_cast<double>(bytes) / passed : 0;
}

}  // namespace

void drop_from_cache(const std::vector<std::string>& files, double seconds) {
  const auto start = Clock::now();
  for (const std::string& path : files) {
    if (seconds_since(start) >= seconds) return;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    fdatasync(file);  // pages that are not written yet cannot be dropped
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
  }
}

ColdRead read_cold(const std::vector<std::string>& all, double seconds) {
  constexpr size_t most = 192;
  ColdRead cold;
  if (all.empty()) return cold;
  std::vector<std::string> files;
  const size_t count = std::min(most, all.size());
  for (size_t i = 0; i < count; ++i) files.push_back(all[i * all.size() / count]);
  cold.rate = rate_with(files, 1, seconds, cold.bytes);
  cold.useful_readers = 1;
  double fewer = cold.rate;
  for (const int readers : {4, 16, 64}) {
    uint64_t bytes = 0;
    const double rate = rate_with(files, readers, seconds, bytes);
    if (readers == 4) cold.rate_of_four = rate;
    if (rate < limits::readers_scale * fewer) break;
    cold.useful_readers = readers;
    fewer = rate;
  }
  return cold;
}

}  // namespace tandem
