#include "config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "util/text.h"

namespace tandem {

namespace {

std::string format_number(double number) {
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number < 0 ? "-.inf" : ".inf";
  std::string text = fmt::format("{}", number);
  // 60 alone would come back as an integer.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Text that needs no quotes anywhere: in a block, in a flow list, before a comment.
bool is_bare(const std::string& text) {
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./-").find(c) != std::string_view::npos;
  };
  return !text.empty() && text[0] != '-' && std::all_of(text.begin(), text.end(), word) &&
         parse_value(text).as<std::string>() != nullptr;
}

std::string format_list(const Value::List& list) {
  std::vector<std::string> parts;
  for (const Value& item : list) parts.push_back(format_value(item));
  return "[" + join(parts, ", ") + "]";
}

}  // namespace

std::string Value::spelling() const {
  if (!spelling_.empty()) return spelling_;
  const std::string* text = as<std::string>();
  return text ? *text : format_value(*this);
}

Value Value::spelled(std::string_view text) && {
  spelling_ = text;
  return std::move(*this);
}

std::string format_value(const Value& value) {
  if (const bool* flag = value.as<bool>()) return *flag ? "true" : "false";
  if (const int64_t* integer = value.as<int64_t>()) return fmt::format("{}", *integer);
  if (const double* number = value.as<double>()) return format_number(*number);
  if (const std::string* text = value.as<std::string>())
    return is_bare(*text) ? *text : quoted(*text);
  if (const Value::List* list = value.as<Value::List>()) return format_list(*list);
  return "null";
}

namespace {
// Bytes of the UTF-8 character that begins at `i`; 0 when there is none.
size_t character_length(std::string_view text, size_t i) {
  const auto lead = static_cast<unsigned char>(text[i]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length == 0 || i + length > text.size()) return 0;
  uint32_t code = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t k = 1; k < length; ++k) {
    const auto byte = static_cast<unsigned char>(text[i + k]);
    if ((byte & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3f);
  }
  static constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < smallest[length] || code > 0x10ffff || surrogate ? 0 : length;
}
}  // namespace

bool is_plain_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = character_length(text, i);
    if (length == 0 || text[i] == '\0') return false;
    i += length;
  }
  return true;
}

std::string shown(std::string_view text) {
  constexpr size_t most = 100;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() > most) return out + "…";
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = character_length(text, i);
    const bool escape = length == 0 || byte < 0x20 || byte == 0x7f;
    out += escape ? fmt::format("\\x{:02x}", byte) : std::string(text.substr(i, length));
    i += escape ? 1 : length;
  }
  return out;
}

}  // namespace tandem
