// One setting's value before it has a C++ type: what a YAML scalar or list, an environment variable
// or the right-hand side of `key=value` says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tandem {

class Value {
 public:
  using List = std::vector<Value>;

  Value() = default;  // null
  Value(bool value) : data_(value) {}
  Value(int value) : data_(static_cast<int64_t>(value)) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(List value) : data_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  // The value as T (bool, int64_t, double, std::string, List), or nullptr when it is another kind.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }

  // As it was written, so that a text setting given as `007` or `1e3` keeps its characters.
  std::string spelling() const;
  Value spelled(std::string_view text) &&;

  // By kind and content; the spelling does not count.
  bool operator==(const Value& other) const { return data_ == other.data_; }

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List> data_;
  std::string spelling_;
};

// `true false yes no on off` are booleans, `null` and `~` null, `3` an integer, `1e-4` a number,
// `[a, b]` a list; quoted text is text. Whatever is none of these, or is malformed, is plain text.
Value parse_value(std::string_view text);

// One line that parse_value and YAML both read back as the same value.
std::string format_value(const Value& value);

// Any text as part of one sentence: control characters and broken UTF-8 escaped, the end of a long
// one cut off.
std::string shown(std::string_view text);

// Valid UTF-8 without a NUL: what can be written to a YAML file and read back unchanged.
bool is_plain_utf8(std::string_view text);

}  // namespace tandem
