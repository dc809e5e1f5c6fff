#include "text/unigram_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "tandem/error.h"
#include "text/token_bytes.h"
#include "text/token_unicode.h"

namespace tandem {
namespace {

// How much worse an unknown character is than the worst piece.
constexpr double unknown_penalty = 10.0;

}  // namespace

UnigramModel::Pieces UnigramModel::read_pieces(const JsonPlace& place) {
  const size_t count = place.array_size();
  if (count > static_cast<size_t>(largest_token_id)) place.unsupported("a list of too many pieces");
  Pieces pieces;
  pieces.tokens.reserve(count);
  pieces.scores.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto& entry = place.value()[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      place.element(i).expected("a piece and its score: [\"▁the\", -3.2]");
    }
    pieces.tokens.push_back(entry[0].get<std::string>());
    pieces.scores.push_back(entry[1].get<double>());
  }
  return pieces;
}

UnigramModel::UnigramModel(const JsonPlace& place)
    : UnigramModel(place, read_pieces(place.member("vocab"))) {}

UnigramModel::UnigramModel(const JsonPlace& place, Pieces pieces)
    : TokenModel(Vocabulary::from_list(pieces.tokens)),
      file_(place.file()),
      scores_(std::move(pieces.scores)),
      byte_fallback_(place.truth_of("byte_fallback", false)) {
  if (const auto unknown = place.find("unk_id")) {
    if (scores_.empty()) place.member("vocab").expected("one piece at least");
    unknown_ = static_cast<int32_t>(unknown->whole(0, static_cast<int64_t>(scores_.size()) - 1));
  }
  double worst = std::numeric_limits<double>::infinity();
  std::vector<std::pair<std::string_view, int32_t>> entries;
  entries.reserve(scores_.size());
  for (size_t i = 0; i < scores_.size(); ++i) {
    entries.emplace_back(pieces.tokens[i], static_cast<int32_t>(i));
    worst = std::min(worst, scores_[i]);
  }
  unknown_score_ = worst - unknown_penalty;
  pieces_ = TokenTrie(std::move(entries));
}

void UnigramModel::tokenize(std::string_view word, std::vector<int32_t>& ids) const {
  struct Best {
    double score;
    int32_t id;
    uint32_t length;  // bytes of the last piece; 0: not reached
  };
  constexpr size_t on_stack = 128;
  std::array<Best, on_stack> small;
  std::vector<Best> large;
  if (word.size() >= on_stack) large.resize(word.size() + 1);
  Best* best = large.empty() ? small.data() : large.data();  // by end of the piece
  std::fill_n(best, word.size() + 1, Best{0, 0, 0});

  for (size_t at = 0; at < word.size();) {
    const double here = best[at].score;
    const size_t one = character_at(word, at).length;
    bool single = false;
    const auto offer = [&](size_t end, double score, int32_t id) {
      Best& target = best[end];
      if (target.length != 0 && here + score <= target.score) return;
      target = {here + score, id, static_cast<uint32_t>(end - at)};
    };
    pieces_.prefixes(word, at, [&](size_t end, int32_t id) {
      offer(end, scores_[static_cast<size_t>(id)], id);
      single = single || end == at + one;
    });
    if (!single) {
      if (unknown_ == Vocabulary::none) {
        throw Error(ErrorKind::data,
                    fmt::format("the character `{}` is in no piece of the tokenizer file `{}`, "
                                "which has no unknown token",
                                word.substr(at, one), file_));
      }
      offer(at + one, unknown_score_, unknown_);
    }
    at += one;
  }

  // Backwards over the best path; unknown neighbours become one.
  const size_t from = ids.size();
  size_t unknown_end = 0;
  std::vector<int32_t> fused;
  const auto flush = [&](size_t begin) {
    if (unknown_end == 0) return;
    fused.clear();
    add_unknown(word.substr(begin, unknown_end - begin), fused);
    ids.insert(ids.end(), fused.rbegin(), fused.rend());
    unknown_end = 0;
  };
  for (size_t end = word.size(); end > 0; end -= best[end].length) {
    if (best[end].id == unknown_) {
      if (unknown_end == 0) unknown_end = end;
    } else {
      flush(end);
      ids.push_back(best[end].id);
    }
  }
  flush(0);
  std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(from), ids.end());
}

void UnigramModel::add_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  if (const int32_t id = pieces_.value_of(text); id != TokenTrie::none) {
    ids.push_back(id);
    return;
  }
  std::vector<int32_t> bytes;
  for (size_t i = 0; byte_fallback_ && i < text.size(); ++i) {
    const int32_t id = vocabulary_.id_of(byte_token(static_cast<unsigned char>(text[i])));
    if (id == Vocabulary::none) break;
    bytes.push_back(id);
  }
  if (bytes.size() == text.size()) {
    ids.insert(ids.end(), bytes.begin(), bytes.end());
  } else {
    ids.push_back(unknown_);
  }
}

}  // namespace tandem
