#include "config/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

namespace {

std::string range_text(const Range& range) {
  const std::string low = fmt::format("{:.15g}", range.min);
  const std::string high = fmt::format("{:.15g}", range.max);
  if (std::isinf(range.max)) return fmt::format(" of at least {}", low);
  if (range.above_min) return fmt::format(" above {}, at most {}", low, high);
  return fmt::format(" from {} to {}", low, high);
}

std::optional<Value> as_integer(const Value& value) {
  if (value.as<int64_t>()) return value;
  const double* number = value.as<double>();
  constexpr double limit = 9223372036854775808.0;  // 2^63
  const bool whole = number && std::trunc(*number) == *number;
  if (!whole || *number < -limit || *number >= limit) return std::nullopt;
  return Value(static_cast<int64_t>(*number));
}

std::optional<Value> as_number(const Value& value) {
  if (value.as<double>()) return value;
  const int64_t* integer = value.as<int64_t>();
  return integer ? std::optional(Value(static_cast<double>(*integer))) : std::nullopt;
}

// Scalars keep their characters; `[0, 1]` becomes "0,1".
std::optional<Value> as_text(const Value& value) {
  const Value::List* list = value.as<Value::List>();
  if (!list) return Value(value.spelling());
  std::vector<std::string> parts;
  for (const Value& item : *list) {
    if (item.is_null() || item.as<Value::List>()) return std::nullopt;
    parts.push_back(item.spelling());
  }
  return parts.empty() ? std::nullopt : std::optional(Value(join(parts, ",")));
}

std::optional<Value> as_type(Type type, const Value& value) {
  switch (type) {
    case Type::boolean: return value.as<bool>() ? std::optional(value) : std::nullopt;
    case Type::integer: return as_integer(value);
    case Type::number: return as_number(value);
    case Type::text: return as_text(value);
  }
  return std::nullopt;
}

bool in_range(const Setting& setting, const Value& value) {
  if (!setting.range) return true;
  const int64_t* integer = value.as<int64_t>();
  return setting.range->holds(integer ? static_cast<double>(*integer) : *value.as<double>());
}

bool in_choices(const Setting& setting, const Value& value) {
  const auto& all = setting.choices;
  return all.empty() || std::find(all.begin(), all.end(), *value.as<std::string>()) != all.end();
}

std::string found_text(const Value& value) {
  return value == Value("") ? "nothing" : "`" + shown(format_value(value)) + "`";
}

[[noreturn]] void refuse(const Setting& setting, const Value& value, std::string_view place) {
  const std::string near =
      setting.choices.empty() ? "" : did_you_mean(value.spelling(), setting.choices);
  throw Error(ErrorKind::config, fmt::format("`{}` must be {}, not {} ({}).{}", setting.key,
                                             expected(setting), found_text(value), place, near));
}

}  // namespace

std::string expected(const Setting& setting) {
  std::string out;
  switch (setting.type) {
    case Type::boolean: out = "true or false"; break;
    case Type::integer: out = "a whole number"; break;
    case Type::number: out = "a number"; break;
    case Type::text: out = "text"; break;
  }
  if (!setting.choices.empty()) out = "one of `" + join(setting.choices, "`, `") + "`";
  if (setting.range) out += range_text(*setting.range);
  if (setting.nullable) out += setting.auto_is_null ? ", or null or `auto`" : ", or null";
  return out;
}

Value checked_value(const Setting& setting, const Value& value, std::string_view place) {
  const bool is_auto = setting.auto_is_null && value == Value("auto");
  if (setting.nullable && (value.is_null() || is_auto)) return Value();
  if (value.is_null()) refuse(setting, value, place);
  const std::optional<Value> typed = as_type(setting.type, value);
  if (!typed || !in_range(setting, *typed) || !in_choices(setting, *typed))
    refuse(setting, value, place);
  const std::string* text = typed->as<std::string>();
  if (text && !is_plain_utf8(*text))
    throw Error(ErrorKind::config, fmt::format("`{}` must be UTF-8 text without NUL, not `{}` ({})",
                                               setting.key, shown(*text), place));
  return *typed;
}

void validate(const Config& config) {
  for (const Setting& setting : settings())
    checked_value(setting, setting.get(config), "set in C++");
}

}  // namespace tandem
