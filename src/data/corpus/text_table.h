// Tables in text files: lines, or fields between separators. The text is checked once, when it is
// loaded, so that every sentence can name file, line and byte; what follows may trust it to be
// UTF-8 without NUL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct TextTable {
  std::string name;  // for sentences
  std::string text;  // without byte order mark
};

constexpr size_t longest_line = size_t{1} << 20;     // bytes
constexpr int64_t largest_table = int64_t{2} << 30;  // bytes

// Throws Error(io), or Error(data) for bytes that are no UTF-8 text.
TextTable load_table(const std::string& path);
TextTable check_table(std::string bytes, std::string name);

// Where the first byte stands that is no UTF-8; npos when there is none.
size_t find_bad_utf8(std::string_view text);

struct Line {
  std::string_view text;  // without its end (LF or CRLF)
  int64_t number = 0;     // from 1
};

// Throws Error(data) for a line longer than `longest_line`.
class Lines {
 public:
  explicit Lines(const TextTable& table) : table_(table) {}
  bool next(Line& line);

 private:
  const TextTable& table_;
  size_t position_ = 0;
  int64_t number_ = 0;
};

struct Record {
  std::vector<std::string> fields;
  int64_t line = 0;  // where it begins
};

// Fields between `separator`. With `,` and tab a field may stand in quotes ("" is a quote in it)
// and then hold separators and line ends; `|` tables have no quotes: text in them may begin with
// one. Empty lines are passed over. Throws Error(data) for a quote that never ends.
class Records {
 public:
  Records(const TextTable& table, char separator)
      : table_(table), separator_(separator), quotes_(separator != '|') {}
  bool next(Record& record);

 private:
  std::string quoted_field(int64_t begun);
  const TextTable& table_;
  char separator_;
  bool quotes_;
  size_t position_ = 0;
  int64_t line_ = 1;
};

}  // namespace tandem
