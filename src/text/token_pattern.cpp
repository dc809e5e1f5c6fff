#include <fmt/format.h>

#include <limits>

#include "text/token_unicode.h"
#include "text/tokenizer_normalize.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr size_t npos = std::string_view::npos;

bool is_plain(char32_t code) {
  return std::u32string_view(U"\\.[](){}*+?^$|").find(code) == std::u32string_view::npos;
}

std::optional<size_t> parse_count(std::string_view text) {
  const auto number = parse_int(text);
  if (!number || *number < 0 || *number > 100'000) return std::nullopt;
  return static_cast<size_t>(*number);
}

}  // namespace

TokenPattern::TokenPattern(const JsonPlace& place) {
  if (const auto literal = place.find("String")) {
    literal_ = literal->text();
    if (literal_.empty()) literal->expected("a string of one character or more");
    return;
  }
  read_regex(place.member("Regex"));
}

void TokenPattern::read_regex(const JsonPlace& place) {
  std::string_view rest = place.text();
  const auto refuse = [&] {
    place.unsupported(
        fmt::format("the regular expression `{}` is more than one repeated character", rest));
  };
  const std::string_view whole = rest;
  if (rest.empty()) refuse();
  Character first = character_at(rest, 0);
  rest.remove_prefix(first.length);
  if (first.code == '\\') {
    if (rest.empty()) refuse();
    first = character_at(rest, 0);
    rest.remove_prefix(first.length);
    space_ = first.code == 's';
    if (!space_ && (first.code >= 0x80 || !is_punctuation(first.code))) rest = whole, refuse();
  } else if (!is_plain(first.code)) {
    rest = whole, refuse();
  }
  code_ = first.code;
  if (rest.empty()) return;
  constexpr size_t any = std::numeric_limits<size_t>::max();
  if (rest == "+") {
    most_ = any;
    return;
  }
  if (rest.size() < 3 || rest.front() != '{' || rest.back() != '}') rest = whole, refuse();
  const std::string_view inside = rest.substr(1, rest.size() - 2);
  const size_t comma = inside.find(',');
  const auto least = parse_count(inside.substr(0, comma));
  const auto most = comma == npos                ? least
                    : comma + 1 == inside.size() ? std::optional<size_t>(any)
                                                 : parse_count(inside.substr(comma + 1));
  if (!least || !most || *least == 0 || *most < *least) rest = whole, refuse();
  least_ = *least;
  most_ = *most;
}

bool TokenPattern::matches(char32_t code) const { return space_ ? is_space(code) : code == code_; }

std::pair<size_t, size_t> TokenPattern::find(std::string_view text, size_t at) const {
  if (!literal_.empty()) {
    const size_t begin = text.find(literal_, at);
    return {begin, begin == npos ? npos : begin + literal_.size()};
  }
  while (at < text.size()) {
    size_t end = at, count = 0;
    while (end < text.size() && count < most_) {
      const Character c = character_at(text, end);
      if (!matches(c.code)) break;
      end += c.length;
      ++count;
    }
    if (count >= least_) return {at, end};
    at = end + (end < text.size() ? character_at(text, end).length : 0);
  }
  return {npos, npos};
}

std::string TokenPattern::replace(std::string_view text, std::string_view content) const {
  std::string out;
  size_t at = 0;
  for (;;) {
    const auto [begin, end] = find(text, at);
    if (begin == npos) break;
    out.append(text.substr(at, begin - at)).append(content);
    at = end;
  }
  return out.append(text.substr(at));
}

}  // namespace tandem
