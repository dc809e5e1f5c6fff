#include "checkpoint/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tandem/error.h"

namespace tandem {
namespace {

class FileBytes final : public StoredBytes {
 public:
  explicit FileBytes(const std::filesystem::path& path) {
    name_ = path.string();
    // O_NONBLOCK: opening a pipe must not wait for its other end.
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about {};
    if (file_ < 0 || ::fstat(file_, &about) != 0) fail(errno);
    if (S_ISDIR(about.st_mode)) fail(EISDIR);
    if (!S_ISREG(about.st_mode)) {
      ::close(file_);
      throw Error(ErrorKind::io, fmt::format("cannot read `{}`: it is not a file", name_));
    }
    size_ = static_cast<uint64_t>(about.st_size);
  }
  ~FileBytes() override { ::close(file_); }

 private:
  [[noreturn]] void fail(int error) const {
    if (file_ >= 0) ::close(file_);
    throw Error(ErrorKind::io, fmt::format("cannot read `{}`: {}", name_, std::strerror(error)));
  }

  void fetch(uint64_t offset, void* to, uint64_t count) const override {
    char* place = static_cast<char*>(to);
    while (count > 0) {
      const ssize_t got = ::pread(file_, place, count, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        throw Error(ErrorKind::io,
                    fmt::format("cannot read `{}`: {}", name_, std::strerror(errno)));
      }
      if (got == 0) {
        throw Error(ErrorKind::io,
                    fmt::format("`{}` became shorter while it was being read", name_));
      }
      place += got;
      offset += static_cast<uint64_t>(got);
      count -= static_cast<uint64_t>(got);
    }
  }
  int file_ = -1;
};

class MemoryBytes final : public StoredBytes {
 public:
  MemoryBytes(std::string_view bytes, std::string name) : bytes_(bytes) {
    size_ = bytes.size();
    name_ = std::move(name);
  }

 private:
  void fetch(uint64_t offset, void* to, uint64_t count) const override {
    if (count > 0) std::memcpy(to, bytes_.data() + offset, count);
  }
  std::string_view bytes_;
};

}  // namespace

void StoredBytes::read(uint64_t offset, void* to, uint64_t count) const {
  if (offset > size_ || count > size_ - offset) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` ends at byte {}, where {} bytes from {} on were expected", name_,
                            size_, count, offset));
  }
  fetch(offset, to, count);
}

std::string StoredBytes::read(uint64_t offset, uint64_t count) const {
  if (count > size_) read(offset, nullptr, count);  // says so; takes no memory for it
  std::string bytes(count, '\0');
  read(offset, bytes.data(), count);
  return bytes;
}

std::unique_ptr<StoredBytes> open_bytes(const std::filesystem::path& path) {
  return std::make_unique<FileBytes>(path);
}

std::unique_ptr<StoredBytes> bytes_in_memory(std::string_view bytes, std::string name) {
  return std::make_unique<MemoryBytes>(bytes, std::move(name));
}

}  // namespace tandem
