#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tandem/error.h"
#include "text/added_tokens.h"
#include "text/bpe_learner.h"
#include "text/bpe_model.h"
#include "text/bpe_train.h"
#include "text/pretokenize.h"
#include "text/token_unicode.h"
#include "text/tokenizer_normalize.h"
#include "text/tokenizer_template.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr const char* file_name = "the vocabulary to extend";
constexpr size_t longest_token = 64;  // bytes

// The parts of the existing file that say how a text becomes words, and words become ids.
class Existing {
 public:
  explicit Existing(const JsonPlace& file)
      : normalizer_(part<TokenNormalizer>(file, "normalizer")),
        pretokenizer_(part<Pretokenizer>(file, "pre_tokenizer")),
        model_(checked(file.member("model"))) {
    if (const auto added = file.find("added_tokens")) {
      added_ = AddedTokens(*added, model_, normalizer_);
    }
    end_ = std::max({model_.vocabulary().end(), added_.end(),
                     part<TokenTemplate>(file, "post_processor").end()});
  }

  void cut(const std::string& text, std::vector<std::string>& found) const {
    std::string storage;
    const std::string_view valid = valid_utf8(text, storage);
    added_.split(
        valid, false,
        [&](size_t begin, size_t end) {
          Stretch stretch{std::string(valid.substr(begin, end - begin)), begin == 0 ? 1U : 0U};
          normalizer_.apply(stretch);
          added_.split(
              stretch.text, true,
              [&](size_t from, size_t to) { cut_words(stretch, from, to, found); }, [](int32_t) {});
        },
        [](int32_t) {});
  }

  bool has(std::string_view token) const {
    return model_.vocabulary().id_of(token) != Vocabulary::none ||
           added_.id_of(token) != Vocabulary::none;
  }
  const BpeModel& model() const { return model_; }
  const AddedTokens& added() const { return added_; }
  int64_t end() const { return end_; }

 private:
  template <typename Part>
  static Part part(const JsonPlace& file, const std::string& name) {
    const auto place = file.find(name);
    return place ? Part(*place) : Part();
  }

  static JsonPlace checked(const JsonPlace& model) {
    const JsonPlace kind = model.member("type");
    if (kind.text() != "BPE")
      kind.unsupported(fmt::format("a model of kind `{}` cannot be extended", kind.text()));
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model.text_of(name, "").empty()) {
        model.member(name).unsupported("a vocabulary with marks inside words cannot be extended");
      }
    }
    return model;
  }

  void cut_words(const Stretch& stretch, size_t begin, size_t end,
                 std::vector<std::string>& found) const {
    const size_t origin = stretch.origin > begin ? stretch.origin - begin : 0;
    Words words{stretch.text.substr(begin, end - begin), {{0, end - begin, origin}}}, scratch;
    pretokenizer_.apply(words, scratch);
    for (const Words::Range& range : words.ranges) found.emplace_back(words.word(range));
  }

  TokenNormalizer normalizer_;
  Pretokenizer pretokenizer_;
  BpeModel model_;
  AddedTokens added_;
  int64_t end_ = 0;
};

class Extension {
 public:
  Extension(const Existing& existing, const std::vector<std::string>& texts, int64_t extra)
      : existing_(existing),
        wanted_(extra),
        words_(count_words(
            texts, [&](const std::string& text, auto& found) { existing.cut(text, found); })) {}

  void learn(int64_t smallest_count, bool spaces_allowed) {
    add_characters();
    BpeLearner learner;
    for (const auto& [word, count] : words_) learner.add_word(symbols_of(word), count);
    while (static_cast<int64_t>(tokens_.size()) < wanted_) {
      const auto best = learner.best(smallest_count);
      if (!best) {
        throw Error(ErrorKind::data,
                    fmt::format("the texts give only {} new tokens; {} were asked for",
                                tokens_.size(), wanted_))
            .hint("give more text, or ask for fewer tokens");
      }
      const std::string left = text_of(best->pair.left), right = text_of(best->pair.right);
      const std::string made = left + right;
      const bool spaced = made.find(' ') != std::string::npos;
      if (existing_.has(made) || made.size() > longest_token || (spaced && !spaces_allowed)) {
        learner.refuse(best->pair);
        continue;
      }
      learner.join(best->pair, add(made));
      merges_.emplace_back(left, right);
    }
  }

  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::vector<std::pair<std::string, std::string>>& merges() const { return merges_; }

 private:
  int32_t add(const std::string& token) {
    const auto id = static_cast<int32_t>(existing_.end() + static_cast<int64_t>(tokens_.size()));
    const auto [place, fresh] = ids_.emplace(token, id);
    if (fresh) tokens_.push_back(token);
    return place->second;
  }

  std::string text_of(int32_t id) const {
    if (id >= existing_.end()) return tokens_[static_cast<size_t>(id - existing_.end())];
    return *existing_.model().vocabulary().token_of(id);
  }

  void add_characters() {
    std::unordered_map<std::string, int64_t> counts;
    for (const auto& [word, count] : words_) {
      for (size_t at = 0; at < word.size();) {
        const std::string one = word.substr(at, character_at(word, at).length);
        if (!existing_.has(one)) counts[one] += count;
        at += one.size();
      }
    }
    std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    for (const auto& [one, count] : sorted) {
      if (static_cast<int64_t>(tokens_.size()) < wanted_) add(one);
    }
  }

  // What the existing merges make of the known stretches, and the new characters between them.
  std::vector<int32_t> symbols_of(const std::string& word) const {
    const Vocabulary& known = existing_.model().vocabulary();
    std::vector<int32_t> symbols;
    size_t begin = 0;
    const auto flush = [&](size_t end) {
      if (begin < end) existing_.model().tokenize({word.data() + begin, end - begin}, symbols);
    };
    for (size_t at = 0; at < word.size();) {
      const std::string one = word.substr(at, character_at(word, at).length);
      if (known.id_of(one) == Vocabulary::none) {
        flush(at);
        const auto fresh = ids_.find(one);
        symbols.push_back(fresh == ids_.end() ? BpeLearner::gap : fresh->second);
        begin = at + one.size();
      }
      at += one.size();
    }
    flush(word.size());
    return symbols;
  }

  const Existing& existing_;
  int64_t wanted_;
  std::vector<std::pair<std::string, int64_t>> words_;
  std::vector<std::string> tokens_;  // new ones, by id from existing_.end() on
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<std::pair<std::string, std::string>> merges_;
};

}  // namespace

std::string extend_vocabulary(std::string_view existing, const std::vector<std::string>& texts,
                              int64_t extra, int64_t smallest_count) {
  json file = parse_tokenizer_json(existing, file_name);
  const Existing known{JsonPlace(file, file_name)};
  if (extra < 0 || known.end() + extra > largest_token_id) {
    throw Error(ErrorKind::data,
                fmt::format("{} tokens cannot be added to {}", extra, known.end()));
  }
  json& merges = file["model"]["merges"];
  const bool pairs = !merges.empty() && merges[0].is_array();
  Extension extension(known, texts, extra);
  extension.learn(smallest_count, pairs);

  json& vocabulary = file["model"]["vocab"];
  // Added tokens the model does not know get ids by counting the model's tokens, which are more
  // now: writing them down keeps their ids.
  for (const auto& [id, token] : known.added().by_id()) {
    if (!vocabulary.contains(token.content)) vocabulary[token.content] = id;
  }
  int64_t id = known.end();
  for (const std::string& token : extension.tokens()) vocabulary[token] = id++;
  for (const auto& [left, right] : extension.merges()) {
    merges.push_back(pairs ? json::array({left, right}) : json(left + " " + right));
  }
  return file.dump(2) + "\n";
}

}  // namespace tandem
