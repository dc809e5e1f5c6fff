#include "text/added_tokens.h"

#include <algorithm>

#include "text/token_unicode.h"

namespace tandem {

AddedTokens::AddedTokens(const JsonPlace& place, const TokenModel& model,
                         const TokenNormalizer& normalizer) {
  std::vector<AddedToken> tokens;
  for (size_t i = 0; i < place.array_size(); ++i) {
    const JsonPlace entry = place.element(i);
    entry.member("id").whole(0, largest_token_id);
    tokens.push_back({.content = entry.member("content").text(),
                      .single_word = entry.member("single_word").truth(),
                      .lstrip = entry.member("lstrip").truth(),
                      .rstrip = entry.member("rstrip").truth(),
                      .normalized = entry.member("normalized").truth(),
                      .special = entry.member("special").truth()});
  }

  std::vector<AddedToken> searched;  // special ones first: of equal patterns the first counts
  for (const AddedToken& token : tokens) {
    if (token.special && !token.content.empty() && specials_.insert(token.content).second) {
      searched.push_back(token);
    }
  }
  int64_t next = model.vocabulary().size();
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    int32_t id = id_of(token.content);
    if (id != Vocabulary::none && by_id_.at(id) == token) continue;
    if (id == Vocabulary::none) id = model.vocabulary().id_of(token.content);
    if (id == Vocabulary::none) {
      if (next > largest_token_id) place.unsupported("a list of too many tokens");
      id = static_cast<int32_t>(next++);
    }
    ids_[token.content] = id;
    by_id_[id] = token;
    end_ = std::max<int64_t>(end_, id + 1);
    if (!specials_.contains(token.content)) searched.push_back(token);
  }

  std::vector<std::pair<std::string, int32_t>> before, after;
  for (const AddedToken& token : searched) {
    Stretch stretch{token.content, 0};
    if (token.normalized) normalizer.apply(stretch);
    if (stretch.text.empty()) place.unsupported("an added token that is normalised to nothing");
    (token.normalized ? after : before).emplace_back(std::move(stretch.text), id_of(token.content));
  }
  const auto build = [](const auto& list) {
    std::vector<std::pair<std::string_view, int32_t>> entries(list.rbegin(), list.rend());
    return TokenTrie(std::move(entries));
  };
  before_ = build(before);
  after_ = build(after);
}

int32_t AddedTokens::id_of(std::string_view content) const {
  const auto found = ids_.find(std::string(content));
  return found == ids_.end() ? Vocabulary::none : found->second;
}

const AddedToken* AddedTokens::token_of(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second;
}

bool AddedTokens::widen(std::string_view text, const AddedToken& token, size_t taken,
                        Match& match) const {
  if (token.single_word) {
    if (match.begin > 0 && is_word(character_before(text, match.begin).code)) return false;
    if (match.end < text.size() && is_word(character_at(text, match.end).code)) return false;
  }
  if (token.lstrip) {
    size_t begin = match.begin;
    while (begin > 0) {
      const Character c = character_before(text, begin);
      if (!is_space(c.code)) break;
      begin -= c.length;
    }
    match.begin = std::max(begin, taken);
  }
  while (token.rstrip && match.end < text.size()) {
    const Character c = character_at(text, match.end);
    if (!is_space(c.code)) break;
    match.end += c.length;
  }
  return true;
}

}  // namespace tandem
