#include "data/corpus/clip_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "data/corpus/checksum64.h"
#include "data/corpus/clip_index.h"
#include "tandem/error.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

constexpr char file_magic[16] = "tandem cache 1\n";

struct RecordHeader {
  uint64_t key, sum;  // `sum` of the numbers
  int32_t rows, columns;
  uint64_t own_sum;  // of what stands before
};

int64_t bytes_of(const RecordHeader& header) {
  return int64_t{header.rows} * header.columns * int64_t{sizeof(float)};
}

bool is_good(const RecordHeader& header) {
  constexpr int32_t most = 1 << 24;
  return header.own_sum == checksum64(&header, offsetof(RecordHeader, own_sum)) &&
         header.rows > 0 && header.columns > 0 && header.rows < most && header.columns < most;
}

void write_fully(int file, const void* data, size_t size, int64_t at, const std::string& path) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = pwrite(file, bytes, size, at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0)
      throw Error(ErrorKind::io, fmt::format("cannot write `{}`: {}", path, std::strerror(errno)));
    bytes += done;
    at += done;
    size -= static_cast<size_t>(done);
  }
}

bool read_fully(int file, void* data, size_t size, int64_t at) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t done = pread(file, bytes, size, at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    at += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

}  // namespace

uint64_t clip_cache_key(const ClipView& clip, uint64_t recipe) {
  // Without a fingerprint of the samples, size, time and place stand for the content.
  uint64_t content = clip.fingerprint;
  if (content == 0) {
    content = hash_text(clip.path) ^ mix_bits(static_cast<uint64_t>(clip.bytes));
    content = mix_bits(content ^ static_cast<uint64_t>(clip.modified));
    content = mix_bits(content ^ static_cast<uint64_t>(clip.offset));
  }
  content = mix_bits(content ^ static_cast<uint64_t>(clip.first_frame));
  return mix_bits(mix_bits(content ^ static_cast<uint64_t>(clip.frames)) ^ recipe);
}

ClipCache::ClipCache(std::string path, int file, bool writable)
    : path_(std::move(path)), file_(file), writable_(writable) {}

ClipCache::ClipCache(ClipCache&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      writable_(other.writable_),
      end_(other.end_),
      entries_(std::move(other.entries_)) {}

ClipCache::~ClipCache() {
  if (file_ >= 0) close(file_);
}

ClipCache ClipCache::open_for_writing(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0)
    throw Error(ErrorKind::io, fmt::format("cannot write `{}`: {}", path, std::strerror(errno)));
  ClipCache cache(path, file, true);
  struct stat status {};
  fstat(file, &status);
  if (status.st_size == 0) write_fully(file, file_magic, sizeof file_magic, 0, path);
  cache.load();
  if (ftruncate(file, cache.end_) != 0)
    throw Error(ErrorKind::io, fmt::format("cannot write `{}`: {}", path, std::strerror(errno)));
  return cache;
}

ClipCache ClipCache::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    throw Error(ErrorKind::io, fmt::format("cannot open `{}`: {}", path, std::strerror(errno)));
  ClipCache cache(path, file, false);
  cache.load();
  return cache;
}

void ClipCache::load() {
  char magic[sizeof file_magic];
  if (!read_fully(file_, magic, sizeof magic, 0) || std::memcmp(magic, file_magic, sizeof magic)) {
    throw Error(ErrorKind::corrupt, fmt::format("`{}` is no cache of clips", path_))
        .hint("remove it; `tandem prepare --cache mels` makes it again");
  }
  struct stat status {};
  fstat(file_, &status);
  end_ = sizeof file_magic;
  RecordHeader header{};
  while (read_fully(file_, &header, sizeof header, end_) && is_good(header)) {
    const int64_t values = end_ + int64_t{sizeof header};
    if (values + bytes_of(header) > status.st_size) break;
    entries_[header.key] = {values, header.rows, header.columns, header.sum};
    end_ = values + bytes_of(header);
  }
}

std::optional<ClipCache::Entry> ClipCache::find(uint64_t key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

void ClipCache::add(uint64_t key, int32_t rows, int32_t columns, const float* values) {
  RecordHeader header{.key = key, .sum = 0, .rows = rows, .columns = columns, .own_sum = 0};
  const auto bytes = static_cast<size_t>(bytes_of(header));
  header.sum = checksum64(values, bytes);
  header.own_sum = checksum64(&header, offsetof(RecordHeader, own_sum));
  int64_t at = 0;
  {
    std::lock_guard lock(mutex_);
    at = end_;
    end_ += int64_t{sizeof header} + static_cast<int64_t>(bytes);
    entries_[key] = {at + int64_t{sizeof header}, rows, columns, header.sum};
  }
  // The numbers first: a record whose header is there is whole.
  write_fully(file_, values, bytes, at + int64_t{sizeof header}, path_);
  write_fully(file_, &header, sizeof header, at, path_);
}

void ClipCache::flush() {
  if (fdatasync(file_) != 0)
    throw Error(ErrorKind::io, fmt::format("cannot write `{}`: {}", path_, std::strerror(errno)));
}

void ClipCache::read(const Entry& entry, float* out, int64_t stride) const {
  thread_local std::vector<float> values;
  values.resize(static_cast<size_t>(entry.rows) * static_cast<size_t>(entry.columns));
  const size_t bytes = values.size() * sizeof(float);
  if (!read_fully(file_, values.data(), bytes, entry.offset) ||
      checksum64(values.data(), bytes) != entry.sum) {
    throw Error(ErrorKind::corrupt, fmt::format("a record of `{}` is damaged", path_))
        .hint("remove the file; `tandem prepare --cache mels` makes it again");
  }
  for (int32_t row = 0; row < entry.rows; ++row) {
    std::memcpy(out + row * stride, values.data() + int64_t{row} * entry.columns,
                static_cast<size_t>(entry.columns) * sizeof(float));
  }
}

}  // namespace tandem
