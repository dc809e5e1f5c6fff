// How the table is written: row(section, member, key) takes type, nullability and default from the
// member itself, the rest is added by name.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/schema.h"

namespace tandem {

template <class T>
struct Unwrapped {
  using type = T;
  static constexpr bool optional = false;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using type = T;
  static constexpr bool optional = true;
};

template <class T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, bool>) return Type::boolean;
  if constexpr (std::is_same_v<T, int64_t>) return Type::integer;
  if constexpr (std::is_same_v<T, double>) return Type::number;
  static_assert(std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
                    std::is_same_v<T, double> || std::is_same_v<T, std::string>,
                "a setting is a bool, int64_t, double or std::string, or an optional of one");
  return Type::text;
}

class Row {
 public:
  explicit Row(Setting setting) : setting_(std::move(setting)) {}
  operator Setting() const { return setting_; }

  Row& help(std::string text) { return set(&Setting::help, std::move(text)); }
  Row& flag(std::string name) { return set(&Setting::flag, std::move(name)); }
  Row& choices(std::vector<std::string> all) { return set(&Setting::choices, std::move(all)); }
  Row& aliases(std::vector<std::string> names) { return set(&Setting::aliases, std::move(names)); }
  Row& old_names(std::vector<std::string> names) {
    return set(&Setting::old_names, std::move(names));
  }
  Row& readers(uint32_t bits) { return set(&Setting::readers, bits); }
  Row& auto_is_null() { return set(&Setting::auto_is_null, true); }
  Row& range(double min, double max) { return set(&Setting::range, Range{min, max}); }
  Row& at_least(double min) { return set(&Setting::range, Range{.min = min}); }
  Row& above(double min, double max) { return set(&Setting::range, Range{min, max, true}); }

 private:
  template <class Member, class T>
  Row& set(Member Setting::*member, T value) {
    setting_.*member = std::move(value);
    return *this;
  }

  Setting setting_;
};

template <class Section, class Member>
Row row(Section Config::*section, Member Section::*member, std::string key) {
  using Plain = typename Unwrapped<Member>::type;
  constexpr bool nullable = Unwrapped<Member>::optional;
  Setting setting;
  setting.type = type_of<Plain>();
  setting.nullable = nullable;
  setting.get = [=](const Config& config) {
    const Member& value = config.*section.*member;
    if constexpr (nullable) return value ? Value(*value) : Value();
    if constexpr (!nullable) return Value(value);
  };
  setting.set = [=](Config& config, const Value& value) {
    Member& target = config.*section.*member;
    if constexpr (nullable) target.reset();
    if (!value.is_null()) target = *value.as<Plain>();
  };
  setting.default_value = setting.get(Config{});
  setting.env = environment_name(key);
  setting.key = std::move(key);
  return Row(std::move(setting));
}

std::vector<Setting> model_settings();
std::vector<Setting> data_settings();
std::vector<Setting> training_settings();
std::vector<Setting> generation_settings();
std::vector<Setting> paths_settings();
std::vector<Setting> observe_settings();

}  // namespace tandem
