#include "text/vocabulary.h"

#include <algorithm>

namespace tandem {

Vocabulary Vocabulary::from_object(const JsonPlace& place) {
  Vocabulary made;
  made.ids_.reserve(place.object().size());
  made.tokens_.reserve(place.object().size());
  for (const auto& [token, value] : place.object().items()) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{largest_token_id}) {
      place.member(token).whole(0, largest_token_id);
    }
    const auto id = value.get<int32_t>();
    made.ids_.emplace(token, id);
    made.tokens_.emplace(id, token);
    made.end_ = std::max<int64_t>(made.end_, id + 1);
  }
  made.size_ = static_cast<int64_t>(made.ids_.size());
  return made;
}

Vocabulary Vocabulary::from_list(const std::vector<std::string>& tokens) {
  Vocabulary made;
  made.ids_.reserve(tokens.size());
  made.tokens_.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    made.ids_[tokens[i]] = static_cast<int32_t>(i);
    made.tokens_.emplace(static_cast<int32_t>(i), tokens[i]);
  }
  made.size_ = made.end_ = static_cast<int64_t>(tokens.size());
  return made;
}

int32_t Vocabulary::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? none : found->second;
}

const std::string* Vocabulary::token_of(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

}  // namespace tandem
