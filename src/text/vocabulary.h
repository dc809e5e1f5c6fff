// Tokens and their ids, both ways. Ids may have holes, and two tokens may share one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer_json.h"

namespace tandem {

// More than any tokenizer has; keeps a broken file from asking for an embedding of 2^31 rows.
constexpr int64_t largest_token_id = (int64_t{1} << 24) - 1;

class Vocabulary {
 public:
  static constexpr int32_t none = -1;

  // {"token": id, …}
  static Vocabulary from_object(const JsonPlace& place);
  // Places in the list are the ids; of equal tokens the last id counts.
  static Vocabulary from_list(const std::vector<std::string>& tokens);

  int32_t id_of(std::string_view token) const;
  const std::string* token_of(int32_t id) const;  // nullptr: a hole
  // Entries in the file, which is less than `end()` when there are holes.
  int64_t size() const { return size_; }
  int64_t end() const { return end_; }  // one more than the largest id
  const auto& ids() const { return ids_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::unordered_map<int32_t, std::string> tokens_;
  int64_t size_ = 0, end_ = 0;
};

}  // namespace tandem
