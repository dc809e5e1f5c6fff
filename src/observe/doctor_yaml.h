// A settings file as lines that can be changed one at a time, so that comments, order and style
// stay as their author wrote them.
//
// Lines are understood as far as block style goes (`name: value  # comment`, nested by
// indentation). What is written otherwise (values over several lines, lists) is passed over; a
// value inside
// `{…}` on its line can be replaced, not found. Whoever changes a file so must load the result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct YamlLine {
  size_t number = 0;  // from 0
  size_t indent = 0;
  std::string name;   // as written
  std::string path;   // with the names of the sections it is in: "data.num_workers"
  std::string value;  // as written, without comment; empty: none, or a section
  bool plain = true;  // one scalar on this line, or none
  size_t last = 0;    // the last line that belongs to it
};

std::vector<std::string> split_lines(std::string_view text);  // ends stay with their lines
std::vector<YamlLine> scan_yaml(const std::vector<std::string>& lines);

// The line with `name`'s value replaced; empty: the name, or its value, is not on it.
std::string with_value(const std::string& line, const std::string& name, const std::string& value);
// The line with the name replaced; empty: the line does not begin with it.
std::string with_name(const std::string& line, const std::string& name, const std::string& other);
// The line as a comment, where it stood, with the reason behind it.
std::string commented_out(const std::string& line, const std::string& reason);

// What a unified diff shows of two texts with the same number of lines, three lines of context
// around each change; empty: no change.
std::string unified_diff(const std::vector<std::string>& before,
                         const std::vector<std::string>& after, const std::string& name);

}  // namespace tandem
