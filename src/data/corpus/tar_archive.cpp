#include "data/corpus/tar_archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr int64_t block = 512;
constexpr int64_t largest_extension = 1 << 20;  // of a pax header or a long name

// Places and lengths of the fields of a header (POSIX.1-1988 ustar).
struct Field {
  size_t at, length;
};
constexpr Field name_field{0, 100}, size_field{124, 12}, sum_field{148, 8}, magic_field{257, 6},
    prefix_field{345, 155};
constexpr size_t type_at = 156;

using Header = unsigned char[block];

std::string_view text_of(const Header& header, Field field) {
  const auto* start = reinterpret_cast<const char*>(header) + field.at;
  return {start, strnlen(start, field.length)};
}

// Octal with spaces around it, or binary when the first bit is set (GNU).
std::optional<int64_t> number_of(const Header& header, Field field) {
  if (header[field.at] & 0x80) {
    uint64_t value = header[field.at] & 0x7F;
    for (size_t i = 1; i < field.length; ++i) {
      if (value >> 55) return std::nullopt;
      value = value << 8 | header[field.at + i];
    }
    return static_cast<int64_t>(value);
  }
  const std::string digits = trim(text_of(header, field));
  int64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + (c - '0');  // at most 12 digits: 36 bits
  }
  return value;
}

bool sum_fits(const Header& header) {
  const auto claimed = number_of(header, sum_field);
  int64_t sum = 0;
  for (size_t i = 0; i < sizeof(Header); ++i) {
    const bool in_field = i >= sum_field.at && i < sum_field.at + sum_field.length;
    sum += in_field ? ' ' : header[i];
  }
  return claimed && *claimed == sum;
}

// What a pax header or a GNU long name says about the next member.
struct Extension {
  std::string name;
  std::optional<int64_t> size;
};

// Records "<length> <key>=<value>\n".
void read_pax(std::string_view text, Extension& into) {
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const auto length = parse_int(text.substr(0, space));
    if (space == std::string_view::npos || !length || *length <= static_cast<int64_t>(space) + 1 ||
        *length > static_cast<int64_t>(text.size())) {
      return;
    }
    std::string_view record = text.substr(space + 1, static_cast<size_t>(*length) - space - 1);
    if (record.ends_with('\n')) record.remove_suffix(1);
    const size_t equals = record.find('=');
    if (equals != std::string_view::npos) {
      const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
      if (key == "path") into.name = value;
      if (key == "size") into.size = parse_int(value);
    }
    text.remove_prefix(static_cast<size_t>(*length));
  }
}

std::string name_of(const Header& header, const Extension& extension) {
  if (!extension.name.empty()) return extension.name;
  const std::string name(text_of(header, name_field));
  const bool ustar = text_of(header, magic_field) == "ustar";
  const std::string prefix(ustar ? text_of(header, prefix_field) : "");
  return prefix.empty() ? name : prefix + "/" + name;
}

}  // namespace

TarReader::TarReader(std::string path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (file_ < 0 || ::fstat(file_, &status) != 0) {
    const int error = errno;
    if (file_ >= 0) ::close(file_);
    throw Error(ErrorKind::io, fmt::format("cannot read `{}`: {}", path_, std::strerror(error)));
  }
  size_ = status.st_size;
}

TarReader::~TarReader() { ::close(file_); }

bool TarReader::read_at(int64_t offset, void* into, size_t bytes) const {
  auto* out = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t got = ::pread(file_, out, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    offset += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

std::string TarReader::read(const TarMember& member) const {
  std::string bytes(static_cast<size_t>(std::clamp<int64_t>(member.bytes, 0, size_)), '\0');
  if (!read_at(member.offset, bytes.data(), bytes.size())) {
    throw Error(ErrorKind::io, fmt::format("cannot read `{}` in `{}`", member.name, path_));
  }
  return bytes;
}

std::string TarReader::walk(const std::function<void(const TarMember&)>& visit) {
  Extension next;
  Header header;
  int64_t at = 0;
  while (true) {
    if (at + block > size_ || !read_at(at, header, sizeof header)) {
      return at == size_ ? ""
                         : fmt::format("the tar ends in the middle of a header at byte {}", at);
    }
    if (std::all_of(std::begin(header), std::end(header), [](unsigned char c) { return c == 0; })) {
      return "";
    }
    const auto size = next.size ? next.size : number_of(header, size_field);
    if (!sum_fits(header) || !size || *size < 0) {
      return fmt::format("the header at byte {} is damaged", at);
    }
    const char type = static_cast<char>(header[type_at]);
    const TarMember member{name_of(header, next), at + block, *size};
    if (member.bytes > size_ - member.offset) {
      return fmt::format("`{}` at byte {} runs past the end of the tar", member.name.substr(0, 200),
                         at);
    }
    const bool extends = type == 'x' || type == 'L' || type == 'K' || type == 'g';
    if (extends && member.bytes > largest_extension) {
      return fmt::format("the header at byte {} claims a name of {} bytes", at, member.bytes);
    }
    if (type == 'x') {
      read_pax(read(member), next);
    } else if (type == 'L') {
      next.name = read(member).c_str();  // ends at its NUL
    } else if (!extends) {
      next = {};
      if (type == '0' || type == '\0' || type == '7') visit(member);
    }
    at = member.offset + (member.bytes + block - 1) / block * block;
    if (at > size_) at = size_;  // the last member's padding may be missing
  }
}

}  // namespace tandem
