#include "models/json_section.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tandem/error.h"

namespace tandem {

JsonSection::JsonSection(const Json& object, std::string path, const std::string& file)
    : object_(object), path_(std::move(path)), file_(file) {
  if (object_.is_null() || object_.is_object()) return;
  throw Error(ErrorKind::corrupt, fmt::format("`{}`: {} is something else; expected an object",
                                              file_, path_.empty() ? "the file" : path_));
}

bool JsonSection::has(const char* key) const {
  return object_.is_object() && object_.contains(key) && !object_.at(key).is_null();
}

const JsonSection::Json& JsonSection::operator[](const char* key) const {
  static const Json nothing;
  return has(key) ? object_.at(key) : nothing;
}

JsonSection JsonSection::inner(const char* key) const {
  if (!has(key) || !object_.at(key).is_object()) refuse(key, "an object with sizes");
  return {object_.at(key), name_of(key), file_};
}

void JsonSection::whole(const char* key, int64_t& value, int64_t least, int64_t most) const {
  if (!has(key)) return;
  const Json& found = object_.at(key);
  // Python's settings may hold 4.0 where 4 is meant.
  const double number = found.is_number() ? found.get<double>() : 0.5;
  if (number != std::floor(number) || number < static_cast<double>(least) ||
      number > static_cast<double>(most))
    refuse(key, fmt::format("a whole number from {} to {}", least, most));
  value = static_cast<int64_t>(number);
}

void JsonSection::whole(const char* key, int& value, int64_t least, int64_t most) const {
  int64_t wide = value;
  whole(key, wide, least, most);
  value = static_cast<int>(wide);
}

void JsonSection::real(const char* key, double& value, double least, double most) const {
  if (!has(key)) return;
  const double number = object_.at(key).is_number() ? object_.at(key).get<double>() : least - 1;
  if (!(number >= least && number <= most))
    refuse(key, fmt::format("a number from {} to {}", least, most));
  value = number;
}

void JsonSection::flag(const char* key, bool& value) const {
  if (!has(key)) return;
  if (!object_.at(key).is_boolean()) refuse(key, "true or false");
  value = object_.at(key).get<bool>();
}

void JsonSection::text(const char* key, std::string& value) const {
  if (!has(key)) return;
  if (!object_.at(key).is_string()) refuse(key, "a text");
  value = object_.at(key).get<std::string>();
}

std::vector<double> JsonSection::numbers(const char* key, std::vector<double> otherwise) const {
  if (!has(key)) return otherwise;
  const Json& list = object_.at(key);
  std::vector<double> read;
  if (list.is_array()) {
    for (const Json& number : list)
      if (number.is_number()) read.push_back(number.get<double>());
  }
  if (read.empty() || read.size() != list.size()) refuse(key, "a list of numbers");
  return read;
}

void JsonSection::refuse(const std::string& key, const std::string& expected) const {
  throw Error(ErrorKind::corrupt, fmt::format("`{}`: {} is {}; expected {}", file_, name_of(key),
                                              shown(key), expected));
}

void JsonSection::refuse_kind(const std::string& key, const std::string& expected) const {
  throw Error(ErrorKind::config, fmt::format("`{}`: {} is {}; Tandem reads {}", file_, name_of(key),
                                             shown(key), expected));
}

std::string JsonSection::name_of(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

std::string JsonSection::shown(const std::string& key) const {
  if (!object_.is_object() || !object_.contains(key)) return "missing";
  return object_.at(key).dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60);
}

}  // namespace tandem
