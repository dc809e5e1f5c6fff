#include "data/corpus/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

[[noreturn]] void refuse_line(const TextTable& table, int64_t line) {
  throw Error(ErrorKind::data,
              fmt::format("{}:{}: the line is longer than {} bytes; expected one clip a line",
                          table.name, line, longest_line))
      .hint("is this a table of clips? a quote that is never closed may join lines");
}

// Length of the UTF-8 sequence at `at`, 0 when it is none (overlong, surrogate, beyond 10FFFF).
size_t sequence_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
  return length;
}

void refuse_utf16(const std::string& bytes, const std::string& name) {
  const std::string_view start = std::string_view(bytes).substr(0, 2);
  if (start != "\xFF\xFE" && start != "\xFE\xFF") return;
  throw Error(ErrorKind::data, fmt::format("{}:1: the text is UTF-16; expected UTF-8", name))
      .hint(fmt::format("convert it: iconv -f UTF-16 -t UTF-8 \"{0}\" > \"{0}.utf8\"", name));
}

}  // namespace

size_t find_bad_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = sequence_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

TextTable check_table(std::string bytes, std::string name) {
  refuse_utf16(bytes, name);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.erase(0, 3);
  const auto place = [&](size_t at) {
    const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto line = std::count(bytes.begin(), end, '\n') + 1;
    const size_t start = at == 0 ? std::string::npos : bytes.rfind('\n', at - 1);
    const size_t column = at - (start == std::string::npos ? 0 : start + 1) + 1;
    return std::pair(line, column);
  };
  if (const size_t nul = bytes.find('\0'); nul != std::string::npos) {
    const auto [line, column] = place(nul);
    throw Error(
        ErrorKind::data,
        fmt::format("{}:{}: byte {} of the line is NUL; expected UTF-8 text", name, line, column))
        .hint("is this a table of clips, and was it copied whole?");
  }
  if (const size_t bad = find_bad_utf8(bytes); bad != std::string::npos) {
    const auto [line, column] = place(bad);
    throw Error(ErrorKind::data,
                fmt::format("{}:{}: byte {} of the line, 0x{:02X}, is not UTF-8; the text looks "
                            "like Windows-1252",
                            name, line, column, static_cast<unsigned char>(bytes[bad])))
        .hint(
            fmt::format("convert it: iconv -f WINDOWS-1252 -t UTF-8 \"{0}\" > \"{0}.utf8\"", name));
  }
  return {std::move(name), std::move(bytes)};
}

TextTable load_table(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > static_cast<uintmax_t>(largest_table)) {
    throw Error(ErrorKind::data, fmt::format("`{}` has {} bytes; a table of clips may have {}",
                                             path, size, largest_table));
  }
  return check_table(read_file(path), path);
}

bool Lines::next(Line& line) {
  if (position_ >= table_.text.size()) return false;
  const size_t end = std::min(table_.text.find('\n', position_), table_.text.size());
  line.text = std::string_view(table_.text).substr(position_, end - position_);
  line.number = ++number_;
  if (line.text.size() > longest_line) refuse_line(table_, number_);
  if (line.text.ends_with('\r')) line.text.remove_suffix(1);
  position_ = end + 1;
  return true;
}

std::string Records::quoted_field(int64_t begun) {
  const std::string& text = table_.text;
  std::string field;
  ++position_;
  while (position_ < text.size()) {
    const char c = text[position_++];
    if (c == '\n') ++line_;
    if (c != '"') {
      field += c;
    } else if (position_ < text.size() && text[position_] == '"') {
      field += text[position_++];
    } else {
      return field;
    }
    if (field.size() > longest_line) refuse_line(table_, begun);
  }
  throw Error(ErrorKind::data,
              fmt::format("{}:{}: a quote opens here and never closes", table_.name, begun))
      .hint("write a quote inside a quoted field twice: \"\"");
}

bool Records::next(Record& record) {
  const std::string& text = table_.text;
  while (position_ < text.size() && (text[position_] == '\n' || text[position_] == '\r')) {
    line_ += text[position_++] == '\n';
  }
  if (position_ >= text.size()) return false;
  record.fields.clear();
  record.line = line_;
  size_t bytes = 0;
  while (true) {
    std::string field;
    if (quotes_ && position_ < text.size() && text[position_] == '"') field = quoted_field(line_);
    // What stands between a closing quote and the separator belongs to the field too.
    const size_t start = position_;
    while (position_ < text.size() && text[position_] != separator_ && text[position_] != '\n') {
      ++position_;
    }
    field.append(text, start, position_ - start);
    const bool ends = position_ >= text.size() || text[position_] == '\n';
    if (ends && field.ends_with('\r')) field.pop_back();
    bytes += field.size();
    if (bytes > longest_line) refuse_line(table_, record.line);
    record.fields.push_back(std::move(field));
    if (position_ < text.size()) line_ += text[position_++] == '\n';
    if (ends) return true;
  }
}

}  // namespace tandem
