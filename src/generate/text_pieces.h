// A text cut into what the model can say in one go, each piece cleaned and turned into ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace tandem {

struct TextPiece {
  std::string text;            // as given
  std::string normalised;      // as spoken
  std::vector<int64_t> ids;    // without START and STOP
  int64_t characters = 0;      // of `normalised`
  bool ends_sentence = false;  // the next piece begins a sentence of its own
};

struct TextPieceOptions {
  std::string language = "en";
  std::vector<std::string> languages = {};  // the model's; empty: all that are known
  bool split = true;                        // at sentences, to the language's limit
  bool coqui = false;                       // Coqui's cleaning; endings stay as they are
  bool keeps_endings = false;               // endings stay as they are
  // Characters of a piece that the model knows how to speak; longer sentences are cut where a
  // reader would pause. 0: not known. Not without `split`.
  int64_t longest = 0;
  int64_t token_limit = 402;  // a piece has fewer ids than this
  int64_t token_rows = 0;     // ids of the model's embedding; 0: unknown
};

// The language's own code ("zh-cn" for "zh"). One the model's folder lists but we do not know is
// taken as it is. Throws Error(data) with the model's languages.
std::string speech_language(std::string_view code, const std::vector<std::string>& model_languages);

// Never empty: Error(data) for a text with nothing to say. A piece of too many ids is cut further,
// also when splitting is off. Throws Error(corrupt) when vocabulary and model do not fit.
std::vector<TextPiece> make_text_pieces(std::string_view text, const TextPieceOptions& options,
                                        const Tokenizer& tokenizer);

// Without the punctuation at its end that makes XTTS go on: full stops, commas, dashes, quotes,
// brackets. One question or exclamation mark stays, for its melody.
std::string calm_ending(std::string_view normalised);

}  // namespace tandem
