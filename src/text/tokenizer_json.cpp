#include "text/tokenizer_json.h"

#include <fmt/format.h>

#include "tandem/error.h"
#include "text/token_unicode.h"

namespace tandem {

using nlohmann::json;

JsonPlace JsonPlace::member(const std::string& key) const {
  const auto found = object().find(key);
  if (found == value_->end()) expected(fmt::format("an object with a member `{}`", key));
  return {*found, file_, path_ + "/" + key};
}

std::optional<JsonPlace> JsonPlace::find(const std::string& key) const {
  const auto found = object().find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonPlace(*found, file_, path_ + "/" + key);
}

JsonPlace JsonPlace::element(size_t index) const {
  if (index >= array_size()) expected(fmt::format("an array of more than {} elements", index));
  return {(*value_)[index], file_, fmt::format("{}/{}", path_, index)};
}

size_t JsonPlace::array_size() const {
  if (!value_->is_array()) expected("an array");
  return value_->size();
}

const json& JsonPlace::object() const {
  if (!value_->is_object()) expected("an object");
  return *value_;
}

const std::string& JsonPlace::text() const {
  if (!value_->is_string()) expected("a string");
  return value_->get_ref<const std::string&>();
}

char32_t JsonPlace::character() const {
  const std::string& whole = text();
  if (count_characters(whole) != 1) expected("a string of one character");
  return character_at(whole, 0).code;
}

bool JsonPlace::truth() const {
  if (!value_->is_boolean()) expected("true or false");
  return value_->get<bool>();
}

int64_t JsonPlace::whole(int64_t least, int64_t most) const {
  const auto wrong = [&] { expected(fmt::format("a whole number from {} to {}", least, most)); };
  if (!value_->is_number_integer()) wrong();
  if (value_->is_number_unsigned() && value_->get<uint64_t>() > static_cast<uint64_t>(most)) {
    wrong();
  }
  const auto number = value_->get<int64_t>();
  if (number < least || number > most) wrong();
  return number;
}

bool JsonPlace::truth_of(const std::string& key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->truth() : otherwise;
}

std::string JsonPlace::text_of(const std::string& key, const std::string& otherwise) const {
  const auto found = find(key);
  return found ? found->text() : otherwise;
}

void JsonPlace::expected(const std::string& what) const {
  std::string found = value_->type_name();
  if (value_->is_primitive()) {
    std::string shown = value_->dump(-1, ' ', true, json::error_handler_t::replace);
    if (shown.size() > 40) shown = shown.substr(0, 37) + "...";
    found = "`" + shown + "`";
  } else if (value_->empty()) {
    found = "empty " + found;
  }
  throw Error(ErrorKind::corrupt, fmt::format("the tokenizer file `{}` has {} at {}, where {} was "
                                              "expected",
                                              file_, found, path_.empty() ? "/" : path_, what));
}

void JsonPlace::unsupported(const std::string& sentence) const {
  throw Error(ErrorKind::data, fmt::format("the tokenizer file `{}` cannot be used: {} at {}",
                                           file_, sentence, path_.empty() ? "/" : path_));
}

json parse_tokenizer_json(std::string_view text, const std::string& file) {
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    std::string why = error.what();  // "[json.exception.parse_error.101] parse error at line 1, …"
    if (const size_t bracket = why.find("] "); bracket != std::string::npos) {
      why = why.substr(bracket + 2);
    }
    throw Error(ErrorKind::corrupt,
                fmt::format("the tokenizer file `{}` is not JSON: {}", file, why))
        .hint("a tokenizer is a file saved by the Hugging Face `tokenizers` package");
  }
}

}  // namespace tandem
