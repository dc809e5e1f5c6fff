#include "text/bpe_train.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "tandem/error.h"
#include "text/bpe_learner.h"
#include "text/pretokenize.h"
#include "text/token_unicode.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr const char* unknown_token = "[UNK]";

struct Trained {
  std::vector<std::string> tokens;  // by id
  std::unordered_map<std::string, int32_t> ids;
  std::vector<BpeLearner::Pair> merges;

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  int32_t add(const std::string& token) {
    const auto [place, fresh] = ids.emplace(token, static_cast<int32_t>(tokens.size()));
    if (fresh) tokens.push_back(token);
    return place->second;
  }
};

void check(const BpeTrainOptions& options) {
  const auto& specials = options.special_tokens;
  if (std::find(specials.begin(), specials.end(), unknown_token) == specials.end()) {
    throw Error(ErrorKind::config,
                fmt::format("the special tokens of a new tokenizer lack `{}`", unknown_token));
  }
  for (size_t i = 0; i < specials.size(); ++i) {
    if (specials[i].empty() || std::find(specials.begin(), specials.begin() + static_cast<int>(i),
                                         specials[i]) != specials.begin() + static_cast<int>(i)) {
      throw Error(ErrorKind::config,
                  fmt::format("the special token `{}` is empty or given twice", specials[i]));
    }
  }
}

using Counted = std::vector<std::pair<std::string, int64_t>>;

// The characters to keep, by code point.
std::vector<std::string> alphabet_of(const Counted& words, int64_t most) {
  std::map<char32_t, int64_t> counts;
  for (const auto& [word, count] : words) {
    for (size_t at = 0; at < word.size();) {
      const Character c = character_at(word, at);
      counts[c.code] += count;
      at += c.length;
    }
  }
  std::vector<std::pair<char32_t, int64_t>> kept(counts.begin(), counts.end());
  if (most > 0 && static_cast<int64_t>(kept.size()) > most) {
    std::stable_sort(kept.begin(), kept.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    kept.resize(static_cast<size_t>(most));
    std::sort(kept.begin(), kept.end());
  }
  std::vector<std::string> alphabet;
  for (const auto& [code, count] : kept) append_character(alphabet.emplace_back(), code);
  return alphabet;
}

std::vector<int32_t> symbols_of(const std::string& word, const Trained& trained) {
  std::vector<int32_t> symbols;
  for (size_t at = 0; at < word.size();) {
    const size_t length = character_at(word, at).length;
    const auto found = trained.ids.find(word.substr(at, length));
    symbols.push_back(found == trained.ids.end() ? BpeLearner::gap : found->second);
    at += length;
  }
  return symbols;
}

void learn(const Counted& words, const BpeTrainOptions& options, Trained& trained) {
  const auto specials = static_cast<int32_t>(options.special_tokens.size());
  BpeLearner learner;
  for (const auto& [word, count] : words) learner.add_word(symbols_of(word, trained), count);
  while (trained.size() < options.vocabulary_size) {
    const auto best = learner.best(options.smallest_count);
    if (!best && options.at_most) return;
    if (!best) {
      throw Error(ErrorKind::data, fmt::format("the texts give only {} tokens; {} were asked for",
                                               trained.size(), options.vocabulary_size))
          .hint(fmt::format("give more text, or ask for {} tokens or fewer", trained.size()));
    }
    const auto [left, right] = best->pair;
    const std::string made =
        trained.tokens[static_cast<size_t>(left)] + trained.tokens[static_cast<size_t>(right)];
    const auto known = trained.ids.find(made);
    const bool special = known != trained.ids.end() && known->second < specials;
    if (special || static_cast<int64_t>(made.size()) > options.longest_token) {
      learner.refuse(best->pair);
      continue;
    }
    learner.join(best->pair, trained.add(made));
    trained.merges.push_back(best->pair);
  }
}

// By hand, so that the vocabulary stands in the order of its ids.
std::string to_json(const Trained& trained, const BpeTrainOptions& options) {
  const auto quoted = [](const std::string& text) { return json(text).dump(); };
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n";
  out += "  \"added_tokens\": [";
  for (size_t i = 0; i < options.special_tokens.size(); ++i) {
    out += fmt::format(
        "{}\n    {{\"id\": {}, \"content\": {}, \"single_word\": false, \"lstrip\": false, "
        "\"rstrip\": false, \"normalized\": false, \"special\": true}}",
        i == 0 ? "" : ",", i, quoted(options.special_tokens[i]));
  }
  out += "\n  ],\n  \"normalizer\": null,\n  \"pre_tokenizer\": {\"type\": \"Whitespace\"},\n";
  out += "  \"post_processor\": null,\n  \"decoder\": null,\n  \"model\": {\n";
  out += "    \"type\": \"BPE\",\n    \"dropout\": null,\n";
  out += fmt::format("    \"unk_token\": {},\n", quoted(unknown_token));
  out += "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n";
  out += "    \"fuse_unk\": false,\n    \"vocab\": {";
  for (size_t i = 0; i < trained.tokens.size(); ++i) {
    out += fmt::format("{}\n      {}: {}", i == 0 ? "" : ",", quoted(trained.tokens[i]), i);
  }
  out += "\n    },\n    \"merges\": [";
  for (size_t i = 0; i < trained.merges.size(); ++i) {
    const auto [left, right] = trained.merges[i];
    out += fmt::format("{}\n      {}", i == 0 ? "" : ",",
                       quoted(trained.tokens[static_cast<size_t>(left)] + " " +
                              trained.tokens[static_cast<size_t>(right)]));
  }
  return out + "\n    ]\n  }\n}\n";
}

}  // namespace

std::vector<std::string> xtts_special_tokens() {
  return {"[STOP]", "[UNK]", "[SPACE]", "[START]", "[en]", "[es]", "[fr]",
          "[de]",   "[it]",  "[pt]",    "[pl]",    "[tr]", "[ru]", "[nl]",
          "[cs]",   "[ar]",  "[zh-cn]", "[hu]",    "[ko]", "[ja]", "[hi]"};
}

std::string train_bpe(const std::vector<std::string>& texts, const BpeTrainOptions& options) {
  check(options);
  const Counted words = count_words(texts, [](const std::string& text, auto& found) {
    std::string storage;
    const std::string_view valid = valid_utf8(text, storage);
    for_each_word(valid, [&](size_t begin, size_t end) {
      found.emplace_back(valid.substr(begin, end - begin));
    });
  });
  Trained trained;
  for (const std::string& token : options.special_tokens) trained.add(token);
  for (const std::string& one : alphabet_of(words, options.largest_alphabet)) trained.add(one);
  if (trained.size() > options.vocabulary_size) {
    throw Error(ErrorKind::data,
                fmt::format("a vocabulary of {} tokens is too small: the special tokens and the "
                            "characters of the texts alone are {}",
                            options.vocabulary_size, trained.size()))
        .hint("ask for more tokens, or keep only the most frequent characters");
  }
  learn(words, options, trained);
  return to_json(trained, options);
}

}  // namespace tandem
