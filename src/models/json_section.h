// Takes settings out of one object of a model's JSON file, and says which one is wrong: "`file`:
// decoder.num_heads is -3; expected a whole number from 1 to 1024". What is missing or null leaves
// the value as it is. The tree and the file's name must outlive it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tandem {

class JsonSection {
 public:
  using Json = nlohmann::json;
  // `path` is "" for the file itself, "decoder" for an object in it. Null stands for an empty one.
  JsonSection(const Json& object, std::string path, const std::string& file);

  bool has(const char* key) const;
  const Json& operator[](const char* key) const;  // null where it is missing
  JsonSection inner(const char* key) const;       // must be there

  void whole(const char* key, int64_t& value, int64_t least, int64_t most) const;
  void whole(const char* key, int& value, int64_t least, int64_t most) const;
  void real(const char* key, double& value, double least, double most) const;
  void flag(const char* key, bool& value) const;
  void text(const char* key, std::string& value) const;
  std::vector<double> numbers(const char* key, std::vector<double> otherwise) const;

  // Error(corrupt): the file is wrong. Error(config): well formed, but not built here.
  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;
  [[noreturn]] void refuse_kind(const std::string& key, const std::string& expected) const;

 private:
  std::string name_of(const std::string& key) const;
  std::string shown(const std::string& key) const;
  const Json& object_;
  std::string path_;
  const std::string& file_;
};

}  // namespace tandem
