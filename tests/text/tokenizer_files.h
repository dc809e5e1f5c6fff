// Small tokenizer files for tests, and the fixtures made by
// tests/parity/make_tokenizer_fixtures.py.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "util/atomic_file.h"

namespace tandem {

inline std::string tokenizer_fixture(const std::string& name) {
  return std::string(TANDEM_SOURCE_DIR) + "/tests/text/fixtures/tokenizers/" + name;
}

inline nlohmann::json expected_ids() {
  return nlohmann::json::parse(read_file(tokenizer_fixture("expected.json")));
}

// Characters a to e, `ab` and `abc`; ids with a hole at 9.
inline nlohmann::json small_bpe() {
  return nlohmann::json::parse(R"({
    "version": "1.0", "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "unk_token": "[UNK]", "merges": ["a b", "ab c"],
              "vocab": {"[UNK]": 0, "a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "ab": 6, "abc": 10}}})");
}

inline nlohmann::json small_unigram() {
  return nlohmann::json::parse(R"({
    "version": "1.0", "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "post_processor": null, "decoder": {"type": "Metaspace", "replacement": "▁"},
    "model": {"type": "Unigram", "unk_id": 0,
              "vocab": [["<unk>", 0], ["▁", -2], ["a", -3], ["b", -3], ["ab", -4], ["▁a", -3.5]]}})");
}

inline nlohmann::json added_token(const std::string& content, const nlohmann::json& flags = {}) {
  nlohmann::json token = {{"id", 0},         {"content", content}, {"single_word", false},
                          {"lstrip", false}, {"rstrip", false},    {"normalized", false},
                          {"special", false}};
  if (flags.is_object()) token.update(flags);
  return token;
}

inline std::unique_ptr<const Tokenizer> tokenizer_of(const nlohmann::json& file) {
  return parse_tokenizer(file.dump(), "t.json");
}

using Ids = std::vector<int32_t>;

}  // namespace tandem
