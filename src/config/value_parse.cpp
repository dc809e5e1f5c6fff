// Text to Value. YAML files come through here too, one plain scalar at a time, so that a value
// means the same wherever it is written.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "config/value.h"
#include "util/text.h"

namespace tandem {

namespace {

constexpr int deepest_list = 8;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// [sign] digits [. digits] [e [sign] digits]: keeps `nan`, `inf` and `0x10`, which the standard
// parsers take, as text.
bool looks_like_number(std::string_view text) {
  size_t i = 0;
  const auto sign = [&] { i += i < text.size() && (text[i] == '+' || text[i] == '-'); };
  const auto digits = [&] {
    const size_t start = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i - start;
  };
  sign();
  size_t mantissa = digits();
  if (i < text.size() && text[i] == '.') {
    ++i;
    mantissa += digits();
  }
  if (mantissa == 0) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    sign();
    if (digits() == 0) return false;
  }
  return i == text.size();
}

std::optional<Value> parse_word(std::string_view text) {
  if (text == "~") return Value();
  if (text.size() > 5) return std::nullopt;
  const std::string word = lower(text);
  if (word == "null") return Value();
  if (word == "true" || word == "yes" || word == "on") return Value(true);
  if (word == "false" || word == "no" || word == "off") return Value(false);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (word == ".inf" || word == "+.inf") return Value(infinity);
  if (word == "-.inf") return Value(-infinity);
  if (word == ".nan") return Value(std::numeric_limits<double>::quiet_NaN());
  return std::nullopt;
}

std::optional<Value> parse_number(std::string_view text) {
  if (!looks_like_number(text)) return std::nullopt;
  if (const auto integer = parse_int(text)) return Value(*integer);
  if (const auto number = parse_double(text)) return Value(*number);
  return std::nullopt;
}

// Index just behind the quoted text that begins at `start`; npos when it does not end.
size_t end_of_quoted(std::string_view text, size_t start) {
  const char quote = text[start];
  for (size_t i = start + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      const bool doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
      if (!doubled) return i + 1;
      ++i;
    }
  }
  return std::string_view::npos;
}

// What `\n`, `\x1f` and the like stand for; `rest` begins behind the backslash. Nothing for an
// escape that is not known, and for `\x80` and up, where YAML means a code point and not a byte.
std::optional<char> unescape(std::string_view rest, size_t& used) {
  static constexpr std::string_view names = "ntr\"\\/";
  static constexpr std::string_view meanings = "\n\t\r\"\\/";
  used = 1;
  if (const size_t known = names.find(rest[0]); known != std::string_view::npos)
    return meanings[known];
  if (rest[0] != 'x' || rest.size() < 3) return std::nullopt;
  used = 3;
  int code = 0;
  const char* end = rest.data() + 3;
  const auto [stop, error] = std::from_chars(rest.data() + 1, end, code, 16);
  const bool ascii = error == std::errc{} && stop == end && code >= 0 && code < 0x80;
  return ascii ? std::optional(static_cast<char>(code)) : std::nullopt;
}

std::optional<Value> parse_quoted(std::string_view text) {
  const bool starts = !text.empty() && (text[0] == '"' || text[0] == '\'');
  if (!starts || end_of_quoted(text, 0) != text.size()) return std::nullopt;
  const bool single = text[0] == '\'';
  const std::string_view inside = text.substr(1, text.size() - 2);
  std::string out;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (single || inside[i] != '\\') {
      out += inside[i];
      i += single && inside[i] == '\'';  // '' is one quote
      continue;
    }
    size_t used = 0;
    const auto c = unescape(inside.substr(i + 1), used);
    if (!c) return std::nullopt;
    out += *c;
    i += used;
  }
  return Value(std::move(out));
}

// The comma-separated parts of a list's inside, or nothing when brackets or quotes do not match.
std::optional<std::vector<std::string>> split_items(std::string_view inside) {
  std::vector<std::string> items;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < inside.size(); ++i) {
    const char c = inside[i];
    // An apostrophe inside a word, as in [it's], opens nothing.
    const bool opens = i == 0 || std::string_view(" ,[").find(inside[i - 1]) != std::string::npos;
    if ((c == '"' || c == '\'') && opens) {
      const size_t end = end_of_quoted(inside, i);
      if (end == std::string_view::npos) return std::nullopt;
      i = end - 1;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']') {
      if (--depth < 0) return std::nullopt;
    } else if (c == ',' && depth == 0) {
      items.push_back(trim(inside.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (depth != 0) return std::nullopt;
  const std::string last = trim(inside.substr(start));
  if (!last.empty()) items.push_back(last);
  return items;
}

Value parse(std::string_view text, int depth);

std::optional<Value> parse_list(std::string_view text, int depth) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']' || depth >= deepest_list)
    return std::nullopt;
  const auto items = split_items(text.substr(1, text.size() - 2));
  if (!items || std::find(items->begin(), items->end(), "") != items->end()) return std::nullopt;
  Value::List list;
  for (const std::string& item : *items) list.push_back(parse(item, depth + 1));
  return Value(std::move(list));
}

Value parse(std::string_view text, int depth) {
  if (auto word = parse_word(text)) return std::move(*word).spelled(text);
  if (auto number = parse_number(text)) return std::move(*number).spelled(text);
  if (auto quoted = parse_quoted(text)) return *quoted;
  if (auto list = parse_list(text, depth)) return *list;
  return Value(std::string(text));
}

}  // namespace

Value parse_value(std::string_view text) { return parse(trim(text), 0); }

}  // namespace tandem
