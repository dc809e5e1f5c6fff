#include "audio/file/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tandem {
namespace {

[[noreturn]] void refuse(AudioFault fault, const std::string& name, const std::string& why) {
  throw AudioError(fault, fmt::format("cannot read {}: {}", name, why));
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a folder, not a file";
  if (S_ISFIFO(mode)) return "it is a pipe, not a file";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "it is a device, not a file";
  return "it is not a plain file";
}

}  // namespace

FileSlice::FileSlice(const AudioSource& source) : offset_(source.offset) {
  name_ = shown_name(source.path);
  whole_file_ = source.offset == 0 && source.size < 0;
  // A path with a zero byte would open another file than the one it names.
  if (source.path.empty() || source.path.find('\0') != std::string::npos) {
    refuse(AudioFault::missing, name_, "there can be no file of that name");
  }
  // Without O_NONBLOCK, opening a pipe waits for a writer.
  descriptor_ = ::open(source.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    refuse(missing ? AudioFault::missing : AudioFault::unreadable, name_, std::strerror(errno));
  }
  try {
    struct stat state {};
    if (::fstat(descriptor_, &state) != 0) {
      refuse(AudioFault::unreadable, name_, std::strerror(errno));
    }
    if (!S_ISREG(state.st_mode)) refuse(AudioFault::unreadable, name_, kind_of(state.st_mode));
    const int64_t file_size = state.st_size;
    if (offset_ < 0 || offset_ > file_size || source.size > file_size - offset_) {
      refuse(AudioFault::truncated, name_,
             fmt::format("{} bytes from {} were asked for, it has {}", source.size, offset_,
                         file_size));
    }
    size_ = source.size >= 0 ? source.size : file_size - offset_;
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

FileSlice::~FileSlice() { ::close(descriptor_); }

int64_t FileSlice::read_at(int64_t offset, std::span<std::byte> into) {
  if (offset < 0 || offset >= size_) return 0;
  const auto most = static_cast<size_t>(size_ - offset);
  return read_descriptor_at(descriptor_, offset_ + offset, into.first(std::min(into.size(), most)),
                            name_);
}

MemoryBytes::MemoryBytes(std::span<const std::byte> bytes, const std::string& name)
    : bytes_(bytes) {
  size_ = static_cast<int64_t>(bytes.size());
  name_ = shown_name(name);
}

int64_t MemoryBytes::read_at(int64_t offset, std::span<std::byte> into) {
  if (offset < 0 || offset >= size_) return 0;
  const auto part = bytes_.subspan(static_cast<size_t>(offset));
  const size_t count = std::min(part.size(), into.size());
  std::copy_n(part.begin(), count, into.begin());
  return static_cast<int64_t>(count);
}

int64_t read_descriptor_at(int descriptor, int64_t offset, std::span<std::byte> into,
                           const std::string& name) {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(descriptor, into.data() + done, into.size() - done,
                                offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(AudioFault::unreadable, name, std::strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<int64_t>(done);
}

std::string shown_name(const std::string& path) {
  std::string shown = "`";
  for (const char c : path) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      shown += "\\n";
    } else if (code < 0x20 || code == 0x7F) {
      shown += fmt::format("\\x{:02x}", code);
    } else {
      shown += c;
    }
  }
  return shown + "`";
}

}  // namespace tandem
