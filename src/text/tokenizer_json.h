// A value inside a tokenizer file that knows where it stands, so that every complaint names the
// file, the place (`/model/vocab`) and what was expected there. Must not outlive the JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& value, std::string file, std::string path = "")
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& file() const { return file_; }

  JsonPlace member(const std::string& key) const;               // must be there
  std::optional<JsonPlace> find(const std::string& key) const;  // nothing: absent or null
  JsonPlace element(size_t index) const;
  size_t array_size() const;
  const nlohmann::json& object() const;

  const std::string& text() const;
  char32_t character() const;  // a text of exactly one character
  bool truth() const;
  int64_t whole(int64_t least, int64_t most) const;

  bool truth_of(const std::string& key, bool otherwise) const;
  std::string text_of(const std::string& key, const std::string& otherwise) const;

  [[noreturn]] void expected(const std::string& what) const;         // Error(corrupt)
  [[noreturn]] void unsupported(const std::string& sentence) const;  // Error(data)

 private:
  const nlohmann::json* value_;
  std::string file_, path_;
};

// The whole file as JSON; Error(corrupt) that says where the parser stopped.
nlohmann::json parse_tokenizer_json(std::string_view text, const std::string& file);

}  // namespace tandem
