#include <fmt/format.h>

#include <algorithm>

#include "generate/captions.h"

namespace tandem {

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string& field = fields[i];
    if (i > 0) line += ',';
    // A line of one empty field would be no line at all.
    const bool quoted = field.find_first_of(",\"\r\n") != std::string::npos ||
                        field.starts_with(' ') || field.ends_with(' ') ||
                        (fields.size() == 1 && field.empty());
    if (!quoted) {
      line += field;
      continue;
    }
    line += '"';
    for (const char c : field) line += c == '"' ? "\"\"" : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

std::vector<std::string> metadata_columns(const std::vector<std::string>& columns) {
  std::vector<std::string> all = columns;
  for (std::string& column : all) {
    if (column != "filename") continue;
    do {
      column = "input_" + column;
    } while (std::ranges::count(all, column) > 1);
  }
  all.push_back("filename");
  return all;
}

}  // namespace tandem
