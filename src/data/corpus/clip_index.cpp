#include "data/corpus/clip_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include "data/corpus/checksum64.h"
#include "data/corpus/index_format.h"
#include "tandem/error.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw Error(ErrorKind::corrupt, fmt::format("the index `{}` {}", name, what))
      .hint("write it anew: tandem prepare");
}

}  // namespace

// Owns the bytes (a mapping or a buffer) and points to the columns in them.
struct ClipIndex::Mapped {
  const char* data = nullptr;
  size_t bytes = 0;
  void* mapping = nullptr;
  std::vector<uint64_t> buffer;  // words, for their alignment
  std::string root;
  int64_t clips = 0;
  IndexEntry entries[section_count] = {};

  Mapped() = default;
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() {
    if (mapping) ::munmap(mapping, bytes);
  }

  void hold(std::string_view from) {
    buffer.resize((from.size() + 7) / 8);
    if (!from.empty()) std::memcpy(buffer.data(), from.data(), from.size());
    data = reinterpret_cast<const char*>(buffer.data());
    bytes = from.size();
  }
  template <class T>
  const T* column(IndexSection section) const {
    return reinterpret_cast<const T*>(data + entries[section].offset);
  }
  std::string_view text(uint64_t word) const {
    return {data + entries[string_pool].offset + (word >> 24), word & longest_string};
  }
  bool fits_pool(uint64_t word) const {
    const uint64_t pool = entries[string_pool].bytes;
    return (word >> 24) <= pool && (word & longest_string) <= pool - (word >> 24);
  }
  void check(const std::string& name);
  void check_head(const std::string& name, IndexHeader& header);
  void check_sections(const std::string& name) const;
  void check_rows(const std::string& name) const;
};

void ClipIndex::Mapped::check_head(const std::string& name, IndexHeader& header) {
  if (bytes < sizeof header) refuse(name, fmt::format("has {} bytes: it is cut short", bytes));
  std::memcpy(&header, data, sizeof header);
  if (std::memcmp(header.magic, index_magic, sizeof index_magic) != 0) {
    refuse(name, "does not begin as an index does");
  }
  if (header.byte_order != index_byte_order) {
    refuse(name, "was written by a machine of another byte order");
  }
  if (header.version != index_version) {
    refuse(name, fmt::format("has version {}; this program reads version {}", header.version,
                             index_version));
  }
  if (header.file_bytes != bytes || bytes < index_head_bytes || header.sections != section_count) {
    refuse(name, fmt::format("has {} bytes and claims {}: it is cut short or damaged", bytes,
                             header.file_bytes));
  }
  std::string head(data, index_head_bytes);
  std::memset(head.data() + offsetof(IndexHeader, sum), 0, sizeof header.sum);
  if (checksum64(head) != header.sum) refuse(name, "is damaged: the sum of its header is wrong");
  std::memcpy(entries, data + sizeof header, sizeof entries);
}

void ClipIndex::Mapped::check_sections(const std::string& name) const {
  for (uint32_t section = 0; section < section_count; ++section) {
    const IndexEntry& entry = entries[section];
    const bool inside = entry.offset % 8 == 0 && entry.offset >= index_head_bytes &&
                        entry.offset <= bytes && entry.bytes <= bytes - entry.offset;
    // Dividing, since a hostile count times a width may overflow.
    const bool whole = section == string_pool ||
                       (entry.bytes % column_width(section) == 0 &&
                        entry.bytes / column_width(section) == static_cast<uint64_t>(clips));
    if (!inside || !whole) refuse(name, fmt::format("is damaged: section {} lies wrong", section));
    if (checksum64(data + entry.offset, entry.bytes) != entry.sum) {
      refuse(name, fmt::format("is damaged: the sum of section {} is wrong", section));
    }
  }
}

void ClipIndex::Mapped::check_rows(const std::string& name) const {
  const auto all = [&](bool good, IndexSection section) {
    if (!good) refuse(name, fmt::format("is damaged: a value in section {} cannot be", +section));
  };
  for (const auto section :
       {id_column, text_column, speaker_column, language_column, path_column}) {
    const auto* words = column<uint64_t>(section);
    bool good = true;
    for (int64_t row = 0; row < clips; ++row) good &= fits_pool(words[row]);
    all(good, section);
  }
  for (const auto section : {offset_column, bytes_column, frames_column, first_frame_column}) {
    const auto* values = column<int64_t>(section);
    bool good = true;
    // Sums of two, such as offset + bytes, must not overflow.
    for (int64_t row = 0; row < clips; ++row)
      good &= values[row] >= 0 && values[row] < INT64_MAX / 4;
    all(good, section);
  }
  for (const auto section : {sample_rate_column, channels_column, tokens_column, part_column}) {
    const auto* values = column<int32_t>(section);
    bool good = true;
    for (int64_t row = 0; row < clips; ++row) good &= values[row] >= 0;
    all(good, section);
  }
}

void ClipIndex::Mapped::check(const std::string& name) {
  IndexHeader header;
  check_head(name, header);
  if (header.clips > static_cast<uint64_t>(INT64_MAX)) refuse(name, "claims too many clips");
  clips = static_cast<int64_t>(header.clips);
  check_sections(name);
  if (!fits_pool(header.root)) refuse(name, "is damaged: its root cannot be");
  root = text(header.root);
  check_rows(name);
}

ClipIndex ClipIndex::parse(std::string_view bytes, const std::string& name) {
  auto mapped = std::make_shared<Mapped>();
  mapped->hold(bytes);
  mapped->check(name);
  return ClipIndex(std::move(mapped));
}

ClipIndex ClipIndex::from(std::vector<Clip> clips, std::string root) {
  return parse(index_bytes(clips, root), "(in memory)");
}

ClipIndex ClipIndex::open(const std::string& path) {
  const auto fail = [&](int error) {
    throw Error(ErrorKind::io,
                fmt::format("cannot read the index `{}`: {}", path, std::strerror(error)))
        .hint("tandem prepare writes it");
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(errno);
  struct stat status = {};
  auto mapped = std::make_shared<Mapped>();
  int error = ::fstat(file, &status) != 0 ? errno : S_ISREG(status.st_mode) ? 0 : EISDIR;
  if (error == 0 && status.st_size > 0) {
    mapped->bytes = static_cast<size_t>(status.st_size);
    void* place = ::mmap(nullptr, mapped->bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (place == MAP_FAILED) {
      error = errno;
    } else {
      mapped->mapping = place;
      mapped->data = static_cast<const char*>(place);
    }
  }
  ::close(file);
  if (error != 0) fail(error);
  mapped->check(path);
  const fs::path folder = fs::absolute(path).lexically_normal().parent_path();
  fs::path root = (folder / mapped->root).lexically_normal();
  if (!root.has_filename()) root = root.parent_path();
  mapped->root = root.string();
  return ClipIndex(std::move(mapped));
}

int64_t ClipIndex::size() const { return mapped_->clips; }
const std::string& ClipIndex::root() const { return mapped_->root; }

std::string ClipIndex::full_path(int64_t row) const {
  return (fs::path(mapped_->root) / (*this)[row].path).string();
}

ClipView ClipIndex::operator[](int64_t row) const {
  const Mapped& m = *mapped_;
  if (row < 0 || row >= m.clips) {
    throw Error(ErrorKind::internal, fmt::format("clip {} of {} was asked for", row, m.clips));
  }
  const auto text = [&](IndexSection section) { return m.text(m.column<uint64_t>(section)[row]); };
  const auto wide = [&](IndexSection section) { return m.column<int64_t>(section)[row]; };
  const auto narrow = [&](IndexSection section) { return m.column<int32_t>(section)[row]; };
  return {.id = text(id_column),
          .text = text(text_column),
          .speaker = text(speaker_column),
          .language = text(language_column),
          .path = text(path_column),
          .offset = wide(offset_column),
          .bytes = wide(bytes_column),
          .modified = wide(modified_column),
          .frames = wide(frames_column),
          .sample_rate = narrow(sample_rate_column),
          .channels = narrow(channels_column),
          .tokens = narrow(tokens_column),
          .part = narrow(part_column),
          .first_frame = wide(first_frame_column),
          .fingerprint = m.column<uint64_t>(fingerprint_column)[row]};
}

}  // namespace tandem
