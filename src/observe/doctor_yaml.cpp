#include "observe/doctor_yaml.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace tandem {
namespace {

std::string_view without_end(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

// Where the value that starts at `at` ends: before a comment, or, inside `{…}`, before its comma.
size_t value_end(std::string_view line, size_t at, bool in_braces) {
  char quote = 0;
  size_t end = at;
  for (size_t i = at; i < line.size(); ++i) {
    const char c = line[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if ((c == '"' || c == '\'') && i == at) {
      quote = c;
    } else if (c == '#' && i > 0 && (line[i - 1] == ' ' || line[i - 1] == '\t')) {
      break;
    } else if (in_braces && (c == ',' || c == '}')) {
      break;
    }
    if (c != ' ' && c != '\t') end = i + 1;
  }
  return end;
}

struct Key {
  size_t begin = 0, end = 0;  // with its quotes
  size_t value = 0;           // where its value starts; line's size: there is none
  std::string name;
};

// The key at the start of a line; empty name: none.
Key key_of(std::string_view line) {
  Key key;
  key.begin = std::min(line.find_first_not_of(' '), line.size());
  if (key.begin == line.size()) return key;
  const char first = line[key.begin];
  const bool quoted = first == '"' || first == '\'';
  size_t end = key.begin + (quoted ? 1 : 0);
  const auto inside = [&](char c) {
    return quoted ? c != first : c != ':' && c != '#' && c != '{' && c != '[' && c != ' ';
  };
  while (end < line.size() && inside(line[end])) ++end;
  const std::string name(line.substr(key.begin + quoted, end - key.begin - quoted));
  key.end = end + (quoted && end < line.size() ? 1 : 0);
  const size_t colon = line.find_first_not_of(' ', key.end);
  if (colon == line.npos || line[colon] != ':') return key;
  if (colon + 1 < line.size() && line[colon + 1] != ' ' && line[colon + 1] != '\t') return key;
  key.value = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
  if (key.value < line.size() && line[key.value] == '#') key.value = line.size();
  key.name = name;
  return key;
}

bool is_nothing(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return first == line.npos || line[first] == '#' || line.starts_with("---") ||
         line.starts_with("...") || line.starts_with("%");
}

}  // namespace

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::vector<YamlLine> scan_yaml(const std::vector<std::string>& lines) {
  std::vector<YamlLine> found;
  std::vector<std::pair<size_t, std::string>> open;  // indentation and path of what we are in
  std::vector<size_t> owners;                        // their places in `found`
  bool whole = false;                                // the innermost has its value: pass over it
  for (size_t number = 0; number < lines.size(); ++number) {
    const std::string_view line = without_end(lines[number]);
    if (is_nothing(line)) continue;
    const size_t indent = line.find_first_not_of(' ');
    const bool item = line[indent] == '-' || line[indent] == '}' || line[indent] == ']';
    while (!open.empty() && (item ? open.back().first > indent : open.back().first >= indent)) {
      open.pop_back();
      owners.pop_back();
      whole = false;
    }
    for (const size_t owner : owners) found[owner].last = number;
    if (item || (whole && !open.empty())) continue;
    const Key key = key_of(line);
    if (key.name.empty()) continue;
    YamlLine one{.number = number,
                 .indent = indent,
                 .name = key.name,
                 .path = open.empty() ? key.name : open.back().second + "." + key.name,
                 .value = std::string(line.substr(key.value, value_end(line, key.value, false) -
                                                                 std::min(key.value, line.size()))),
                 .last = number};
    const char first = one.value.empty() ? ' ' : one.value[0];
    one.plain = first != '{' && first != '[' && first != '|' && first != '>' && first != '&' &&
                first != '*' && first != '!';
    if ((first == '"' || first == '\'') && (one.value.size() < 2 || one.value.back() != first))
      one.plain = false;
    whole = !one.value.empty();
    open.emplace_back(indent, one.path);
    owners.push_back(found.size());
    found.push_back(std::move(one));
  }
  return found;
}

std::string with_value(const std::string& line, const std::string& name, const std::string& value) {
  const std::string_view text = without_end(line);
  const bool in_braces = key_of(text).name != name;
  size_t at = key_of(text).value;
  if (in_braces) {
    at = text.npos;
    for (size_t i = text.find(name); i != text.npos; i = text.find(name, i + 1)) {
      const size_t end = i + name.size();
      const bool starts = i > 0 && (text[i - 1] == ' ' || text[i - 1] == '{' || text[i - 1] == ',');
      if (!starts || end >= text.size() || text[end] != ':') continue;
      at = text.find_first_not_of(" \t", end + 1);
      break;
    }
  }
  if (at == text.npos || at >= text.size()) return "";
  const size_t end = value_end(text, at, in_braces);
  return line.substr(0, at) + value + line.substr(end);
}

std::string with_name(const std::string& line, const std::string& name, const std::string& other) {
  const Key key = key_of(without_end(line));
  if (key.name != name) return "";
  return line.substr(0, key.begin) + other + line.substr(key.end);
}

std::string commented_out(const std::string& line, const std::string& reason) {
  const std::string_view text = without_end(line);
  const size_t indent = std::min(text.find_first_not_of(' '), text.size());
  const std::string end = line.substr(text.size());
  const std::string why = reason.empty() ? "" : "  # tandem doctor: " + reason;
  return fmt::format("{}# {}{}{}", text.substr(0, indent), text.substr(indent), why, end);
}

std::string unified_diff(const std::vector<std::string>& before,
                         const std::vector<std::string>& after, const std::string& name) {
  constexpr size_t context = 3;
  const size_t lines = before.size();
  std::string hunks;
  const auto add = [&](char mark, const std::string& line) {
    hunks += mark + line;
    if (!line.ends_with('\n')) hunks += "\n\\ No newline at end of file\n";
  };
  for (size_t i = 0; i < lines;) {
    if (before[i] == after[i]) {
      ++i;
      continue;
    }
    // Changes with no more than two contexts between them share a hunk.
    size_t last = i;
    for (size_t j = i; j < std::min(lines, last + 2 * context + 1); ++j)
      if (before[j] != after[j]) last = j;
    const size_t first = i - std::min(i, context), end = std::min(lines, last + context + 1);
    hunks += fmt::format("@@ -{0},{1} +{0},{1} @@\n", first + 1, end - first);
    for (size_t j = first; j < end;) {
      size_t stop = j;
      while (stop < end && before[stop] != after[stop]) ++stop;
      for (size_t k = j; k < stop; ++k) add('-', before[k]);
      for (size_t k = j; k < stop; ++k) add('+', after[k]);
      if (stop == j) add(' ', before[stop++]);
      j = stop;
    }
    i = end;
  }
  return hunks.empty() ? "" : fmt::format("--- {0}\n+++ {0}\n{1}", name, hunks);
}

}  // namespace tandem
