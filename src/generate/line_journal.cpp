#include "generate/line_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* why) {
  throw Error(ErrorKind::io, fmt::format("cannot write `{}`: {}", path.string(), why));
}

enum class Lock { taken, held, none };

Lock lock_file(int descriptor, bool wait) {
  while (::flock(descriptor, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? Lock::held : Lock::none;
  }
  return Lock::taken;
}

// A lock on a file that was replaced or removed meanwhile holds nothing.
bool is_still_at(int descriptor, const std::filesystem::path& path) {
  struct stat opened = {}, there = {};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &there) == 0 &&
         opened.st_ino == there.st_ino && opened.st_dev == there.st_dev;
}

struct Opened {
  int descriptor = -1;
  Lock lock = Lock::none;
};

Opened open_locked(const std::filesystem::path& path, bool wait) {
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor < 0) fail(path, std::strerror(errno));
    const Lock lock = lock_file(descriptor, wait);
    if (lock == Lock::held || is_still_at(descriptor, path)) return {descriptor, lock};
    ::close(descriptor);
  }
}

}  // namespace

LineJournal::LineJournal(std::filesystem::path path, const std::string& held)
    : path_(std::move(path)) {
  Opened opened = open_locked(path_, /*wait=*/false);
  // Others look whether it is held by taking it for a moment.
  for (int i = 0; i < 10 && opened.lock == Lock::held; ++i) {
    ::close(opened.descriptor);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    opened = open_locked(path_, /*wait=*/false);
  }
  descriptor_ = opened.descriptor;
  locked_ = opened.lock == Lock::taken;
  try {
    if (opened.lock == Lock::held) {
      throw Error(ErrorKind::io, held).hint("wait for it, or choose another folder");
    }
    const std::string bytes = read_file(path_);
    if (!bytes.empty() && bytes.back() != '\n') add("");
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

LineJournal::~LineJournal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::vector<std::string> LineJournal::lines() const { return split(read_file(path_), '\n'); }

void LineJournal::add(const std::string& line) {
  const std::string whole = line + "\n";
  std::lock_guard lock(mutex_);
  const ssize_t written = ::write(descriptor_, whole.data(), whole.size());
  if (written < 0) fail(path_, std::strerror(errno));
  if (written != static_cast<ssize_t>(whole.size())) fail(path_, std::strerror(ENOSPC));
}

void LineJournal::sync() {
  std::lock_guard lock(mutex_);
  if (::fsync(descriptor_) != 0) fail(path_, std::strerror(errno));
}

void LineJournal::remove() {
  std::lock_guard lock(mutex_);
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) fail(path_, std::strerror(errno));
}

bool LineJournal::is_held(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return false;
  const Lock lock = lock_file(descriptor, /*wait=*/false);
  ::close(descriptor);
  return lock == Lock::held;
}

void LineJournal::remove_unless_held(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return;
  // Held until it is gone, so that nobody begins to write into it meanwhile.
  if (lock_file(descriptor, /*wait=*/false) != Lock::held) ::unlink(path.c_str());
  ::close(descriptor);
}

FileTurn::FileTurn(const std::filesystem::path& path)
    : descriptor_(open_locked(path, /*wait=*/true).descriptor) {}

FileTurn::~FileTurn() { ::close(descriptor_); }

}  // namespace tandem
