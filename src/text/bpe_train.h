// Makes a BPE vocabulary from texts, or adds to one. The result is the text of a file that
// parse_tokenizer and the Hugging Face `tokenizers` package read. The same texts in any order give
// the same bytes: equal counts are decided by the smaller ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// [STOP] [UNK] [SPACE] [START] and the tokens of the 17 languages, in this order.
std::vector<std::string> xtts_special_tokens();

struct BpeTrainOptions {
  int64_t vocabulary_size = 6681;
  bool at_most = false;          // fewer tokens, where the texts give no more, are no error
  int64_t smallest_count = 2;    // a pair seen less often becomes no token
  int64_t largest_alphabet = 0;  // keep so many characters, the most frequent; 0: all
  int64_t longest_token = 64;    // bytes
  std::vector<std::string> special_tokens = xtts_special_tokens();  // ids from 0; with [UNK]
};

// `texts` are cleaned texts as spoken, with their spaces (not xtts_input of them). Words are cut by
// the Whitespace pre-tokeniser. Ids: special tokens, characters by code point, merges by count.
// Error(data) when the texts cannot give exactly so many tokens, with the number they can give.
std::string train_bpe(const std::vector<std::string>& texts, const BpeTrainOptions& options);

// `existing` is the JSON text of a BPE file; `texts` as above. Adds `extra` tokens: first the
// characters the file does not know, most frequent first, then merges.
//
// What is guaranteed: every existing token keeps its id; new ids follow the largest existing one.
// New merges rank after all existing ones and only make new tokens, so the ids of any text are its
// old ids with some neighbours (and unknown characters) replaced by new ids: a text whose encoding
// holds no new id has exactly the ids it had. (`ignore_merges` files: the same, but a whole word
// that became a token is always that token.)
// Error(data) for another model than BPE, and when the texts cannot give `extra` tokens.
std::string extend_vocabulary(std::string_view existing, const std::vector<std::string>& texts,
                              int64_t extra, int64_t smallest_count = 2);

}  // namespace tandem
