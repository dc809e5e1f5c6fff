// A text as one field of a TSV file: tabs, line ends and backslashes as \t, \n, \r and \\.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

inline std::string tsv_field(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\t': out += "\\t"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\\': out += "\\\\"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace tandem
