#include "text/bpe_model.h"

#include <fmt/format.h>

#include <limits>
#include <queue>

#include "text/token_bytes.h"
#include "text/token_unicode.h"

namespace tandem {
namespace {

constexpr int32_t none = Vocabulary::none;
constexpr uint32_t no_rank = std::numeric_limits<uint32_t>::max();
// Up to here scanning for the lowest rank beats keeping a queue.
constexpr size_t longest_scan = 48;

}  // namespace

BpeModel::BpeModel(const JsonPlace& place)
    : TokenModel(Vocabulary::from_object(place.member("vocab"))),
      prefix_(place.text_of("continuing_subword_prefix", "")),
      suffix_(place.text_of("end_of_word_suffix", "")),
      fuse_unknown_(place.truth_of("fuse_unk", false)),
      byte_fallback_(place.truth_of("byte_fallback", false)),
      ignore_merges_(place.truth_of("ignore_merges", false)) {
  if (const auto dropout = place.find("dropout")) {
    if (!dropout->value().is_number()) dropout->expected("a number or null");
    if (dropout->value().get<double>() != 0.0) {
      dropout->unsupported("BPE dropout is random, which is not supported,");
    }
  }
  if (const auto token = place.find("unk_token")) {
    unknown_ = vocabulary_.id_of(token->text());
    if (unknown_ == none) token->expected("a token of /model/vocab");
  }
  for (size_t byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = vocabulary_.id_of(byte_token(static_cast<unsigned char>(byte)));
  }
  for (size_t c = 0; c < ascii_.size(); ++c) {
    const char one = static_cast<char>(c);
    ascii_[c] = vocabulary_.id_of({&one, 1});
  }
  read_merges(place.member("merges"));
}

void BpeModel::read_merges(const JsonPlace& place) {
  const size_t count = place.array_size();
  if (count >= no_rank) place.unsupported("more merges than can be ranked");
  merges_ = MergeTable(count);
  size_t rank = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto& entry = place.value()[i];
    if (entry.is_string()) {
      const std::string_view line = entry.get_ref<const std::string&>();
      if (line.starts_with("#version")) continue;
      const size_t space = line.find(' ');
      if (space == line.npos || line.find(' ', space + 1) != line.npos) {
        place.element(i).expected("two tokens with one space between them");
      }
      add_merge(line.substr(0, space), line.substr(space + 1), rank++, i, place);
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
               entry[1].is_string()) {
      add_merge(entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>(),
                rank++, i, place);
    } else {
      place.element(i).expected("a merge: \"a b\" or [\"a\", \"b\"]");
    }
  }
}

void BpeModel::add_merge(std::string_view left, std::string_view right, size_t rank, size_t index,
                         const JsonPlace& place) {
  const auto known = [&](std::string_view token) {
    const int32_t id = vocabulary_.id_of(token);
    if (id == none) {
      place.element(index).expected(fmt::format("a merge with `{}` in /model/vocab", token));
    }
    return id;
  };
  const int32_t left_id = known(left), right_id = known(right);
  if (right.size() < prefix_.size()) {
    place.element(index).expected("a merge whose second part starts with the prefix");
  }
  const std::string made = std::string(left).append(right.substr(prefix_.size()));
  merges_.set(left_id, right_id, {static_cast<uint32_t>(rank), known(made)});
}

void BpeModel::tokenize(std::string_view word, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    if (const int32_t id = vocabulary_.id_of(word); id != none) {
      ids.push_back(id);
      return;
    }
  }
  const size_t from = ids.size();
  split(word, ids);
  merge(ids, from);
}

int32_t BpeModel::id_of_character(std::string_view character, char32_t code) const {
  return code < ascii_.size() ? ascii_[code] : vocabulary_.id_of(character);
}

void BpeModel::split(std::string_view word, std::vector<int32_t>& ids) const {
  const bool decorated = !prefix_.empty() || !suffix_.empty();
  bool unknown_waits = false;
  const auto flush = [&] {
    if (unknown_waits) ids.push_back(unknown_);
    unknown_waits = false;
  };
  std::string storage;
  for (size_t at = 0; at < word.size();) {
    const Character c = character_at(word, at);
    std::string_view text = word.substr(at, c.length);
    int32_t id = none;
    if (decorated) {
      storage = at > 0 ? prefix_ : "";
      storage += text;
      if (at + c.length == word.size()) storage += suffix_;
      text = storage;
      id = vocabulary_.id_of(text);
    } else {
      id = id_of_character(text, c.code);
    }
    at += c.length;
    if (id != none) {
      flush();
      ids.push_back(id);
    } else if (byte_fallback_ && add_bytes(text, ids)) {
      // An unknown that waits comes after the bytes: odd, but what the reference does.
    } else if (unknown_ != none) {
      if (!fuse_unknown_) flush();
      unknown_waits = true;
    }
  }
  flush();
}

bool BpeModel::add_bytes(std::string_view text, std::vector<int32_t>& ids) const {
  for (const char c : text) {
    if (bytes_[static_cast<unsigned char>(c)] == none) return false;
  }
  for (const char c : text) ids.push_back(bytes_[static_cast<unsigned char>(c)]);
  return true;
}

void BpeModel::merge(std::vector<int32_t>& ids, size_t from) const {
  const size_t count = ids.size() - from;
  if (count < 2) return;
  if (count <= longest_scan) {
    merge_short(ids, from);
  } else {
    merge_long(ids, from);
  }
}

void BpeModel::merge_short(std::vector<int32_t>& ids, size_t from) const {
  std::array<Merge, longest_scan> pairs;  // of symbol i and the next one
  int32_t* symbols = ids.data() + from;
  size_t count = ids.size() - from;
  const auto look = [&](size_t i) {
    const Merge* merge = merges_.find(symbols[i], symbols[i + 1]);
    pairs[i] = merge != nullptr ? *merge : Merge{no_rank, 0};
  };
  for (size_t i = 0; i + 1 < count; ++i) look(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == no_rank) break;
    symbols[best] = pairs[best].made_id;
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      pairs[i - 1] = pairs[i];
    }
    if (best > 0) look(best - 1);
    if (best + 1 < count) look(best);
  }
  ids.resize(from + count);
}

void BpeModel::merge_long(std::vector<int32_t>& ids, size_t from) const {
  struct Symbol {
    int32_t id;
    size_t previous, next;
  };
  constexpr size_t end = std::numeric_limits<size_t>::max();
  constexpr int32_t gone = -1;
  const size_t count = ids.size() - from;
  std::vector<Symbol> symbols(count);
  for (size_t i = 0; i < count; ++i) {
    symbols[i] = {ids[from + i], i == 0 ? end : i - 1, i + 1 == count ? end : i + 1};
  }
  struct Candidate {
    uint32_t rank;
    size_t place;
    int32_t left, right, made_id;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](size_t place) {
    if (place == end || symbols[place].next == end) return;
    const int32_t left = symbols[place].id, right = symbols[symbols[place].next].id;
    if (const Merge* merge = merges_.find(left, right)) {
      queue.push({merge->rank, place, left, right, merge->made_id});
    }
  };
  for (size_t i = 0; i + 1 < count; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.place];
    if (left.id != top.left || left.next == end || symbols[left.next].id != top.right) continue;
    Symbol& right = symbols[left.next];
    left.id = top.made_id;
    left.next = right.next;
    right.id = gone;
    if (left.next != end) symbols[left.next].previous = top.place;
    offer(left.previous);
    offer(top.place);
  }
  ids.resize(from);
  for (const Symbol& symbol : symbols) {
    if (symbol.id != gone) ids.push_back(symbol.id);
  }
}

}  // namespace tandem
