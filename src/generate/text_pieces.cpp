#include "generate/text_pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"
#include "text/clean.h"
#include "text/clean_characters.h"
#include "util/text.h"

namespace tandem {
namespace {

// Of a language that is not among ours: the least that fits most.
constexpr int usual_limit = 200;

const Language* known_language(std::string_view code) {
  for (const Language& language : languages()) {
    if (language.code == code) return &language;
  }
  return nullptr;
}

bool is_question_or_call(char32_t c) {
  constexpr std::u32string_view marks = U"?!？！؟";
  return marks.find(c) != std::u32string_view::npos;
}

bool provokes(char32_t c) {
  constexpr std::u32string_view marks =
      U".,;:-–—…。、，；：．｡।॥۔؛،\"'`´‘’‚“”„«»‹›()[]{}「」『』（）【】《》*_/\\|~";
  return is_python_space(c) || marks.find(c) != std::u32string_view::npos;
}

bool says_something(std::u32string_view text) {
  return std::ranges::any_of(text, [](char32_t c) { return is_python_word(c) && c != U'_'; });
}

bool at_sentence_end(std::string_view text) {
  std::u32string points = decode_utf8(text);
  constexpr std::u32string_view closing = U"\"')]}»”’」』）】》›";
  constexpr std::u32string_view ends = U".!?…。！？．｡।॥؟۔";
  while (!points.empty() && (is_python_space(points.back()) ||
                             closing.find(points.back()) != std::u32string_view::npos)) {
    points.pop_back();
  }
  return !points.empty() && ends.find(points.back()) != std::u32string_view::npos;
}

// The place to cut a text that is too long: behind the space that follows a comma, semicolon, colon
// or dash, the nearest to the middle; without one in the middle half, behind a space.
size_t cut_near_middle(const std::u32string& text) {
  constexpr std::u32string_view marks = U",;:-–—…、，；：،؛.!?";
  const size_t middle = text.size() / 2, reach = text.size() / 4;
  size_t best = 0;
  bool best_is_mark = false;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (!is_python_space(text[i])) continue;
    const bool is_mark = marks.find(text[i - 1]) != std::u32string_view::npos &&
                         i + reach >= middle && i <= middle + reach;
    const auto away = [&](size_t at) { return at < middle ? middle - at : at - middle; };
    const bool nearer = best == 0 || away(i + 1) < away(best);
    if (is_mark == best_is_mark ? nearer : is_mark) best = i + 1, best_is_mark = is_mark;
  }
  return best;
}

// Halves, quarters and so on of at most `longest` characters, for one text of a sentence. Words
// longer than that stay whole.
std::vector<std::string> parts_to_speak(const std::string& text, int64_t longest) {
  const std::u32string points = decode_utf8(text);
  const size_t cut =
      longest > 0 && static_cast<int64_t>(points.size()) > longest ? cut_near_middle(points) : 0;
  if (cut == 0) return {text};
  std::vector<std::string> parts;
  for (const std::u32string& half : {points.substr(0, cut), points.substr(cut)})
    for (std::string& part : parts_to_speak(std::string(trim(encode_utf8(half))), longest))
      parts.push_back(std::move(part));
  return parts;
}

class PieceMaker {
 public:
  PieceMaker(const TextPieceOptions& options, const Tokenizer& tokenizer)
      : options_(options),
        tokenizer_(tokenizer),
        language_(speech_language(options.language, options.languages)),
        known_(known_language(language_)) {}

  std::vector<TextPiece> make(std::string_view given) {
    const std::string text = options_.coqui ? std::string(given) : to_nfc(given);
    if (options_.split) {
      for (const std::string& part : split_text(text, splitting_language(), limit())) {
        const std::vector<std::string> spoken = parts_to_speak(part, options_.longest);
        for (const std::string& one : spoken)
          add(one, spoken.size() == 1 ? limit() : static_cast<int>(decode_utf8(one).size()));
      }
    } else {
      add(trim(text), static_cast<int>(decode_utf8(text).size()));
    }
    if (pieces_.empty()) {
      throw Error(ErrorKind::data, text.empty() ? "the text is empty: there is nothing to say"
                                                : "the text has no letters or digits: there is "
                                                  "nothing to say");
    }
    return std::move(pieces_);
  }

 private:
  int limit() const { return known_ ? known_->character_limit : usual_limit; }
  std::string splitting_language() const { return known_ ? language_ : "en"; }
  CleanStyle style() const { return options_.coqui ? CleanStyle::coqui : CleanStyle::best; }

  // `at_most`: characters of `text`; cut again below that when it is too much for the model.
  void add(const std::string& text, int at_most) {
    TextPiece piece{.text = text};
    // The reference lowers a text before its cleaners see it, which shows in the Turkish İ.
    const std::string words = options_.coqui ? encode_utf8(to_lower(decode_utf8(text))) : text;
    piece.normalised = known_ ? clean_text(words, language_, style()) : words;
    if (!options_.coqui && !options_.keeps_endings)
      piece.normalised = calm_ending(piece.normalised);
    const std::u32string points = decode_utf8(piece.normalised);
    if (!says_something(points)) return;
    piece.characters = static_cast<int64_t>(points.size());
    for (const int32_t id : tokenizer_.encode(xtts_input(piece.normalised, language_))) {
      check_row(id);
      piece.ids.push_back(id);
    }
    const bool fits = static_cast<int64_t>(piece.ids.size()) < options_.token_limit;
    if (fits && !grew_too_much(piece)) {
      // A line of its own may lack the mark; what was cut within a sentence is near the limit.
      const auto given = static_cast<int>(decode_utf8(text).size());
      piece.ends_sentence = at_sentence_end(text) || 2 * given < at_most;
      pieces_.push_back(std::move(piece));
      return;
    }
    cut_further(piece, at_most);
  }

  // Digits become words: "1,234,567" is 7 times as long when spoken.
  bool grew_too_much(const TextPiece& piece) const {
    const bool spelled = known_ && (language_ == "zh-cn" || language_ == "ja" || language_ == "ko");
    return options_.split && !spelled && piece.characters > 2 * limit();
  }

  void cut_further(const TextPiece& piece, int at_most) {
    const auto characters = static_cast<int>(decode_utf8(piece.text).size());
    const int half = (std::min(at_most, characters) + 1) / 2;
    if (characters <= 1 || half >= characters) {
      throw Error(ErrorKind::data,
                  fmt::format("`{}` is {} tokens; the model takes {} at once", piece.text,
                              piece.ids.size(), options_.token_limit - 1));
    }
    for (const std::string& part : split_text(piece.text, splitting_language(), half)) {
      add(part, half);
    }
  }

  void check_row(int32_t id) const {
    if (options_.token_rows == 0 || id < options_.token_rows) return;
    throw Error(ErrorKind::corrupt,
                fmt::format("the vocabulary gives id {}, but the model's text embedding has {} "
                            "rows: vocab.json and the weights do not belong together",
                            id, options_.token_rows))
        .hint("use the vocab.json that came with these weights");
  }

  const TextPieceOptions& options_;
  const Tokenizer& tokenizer_;
  std::string language_;
  const Language* known_;
  std::vector<TextPiece> pieces_;
};

}  // namespace

std::string speech_language(std::string_view code,
                            const std::vector<std::string>& model_languages) {
  const auto listed = [&](const std::string& name) {
    return std::ranges::find(model_languages, name) != model_languages.end();
  };
  if (model_languages.empty()) return find_language(code).code;
  if (listed(std::string(code))) return std::string(code);
  std::string plain;
  try {
    plain = find_language(code).code;
  } catch (const Error&) {  // the model's own list is the better answer
  }
  if (!plain.empty() && listed(plain)) return plain;
  throw Error(ErrorKind::data, fmt::format("the model does not speak `{}`; it speaks {}.", code,
                                           join(model_languages, ", ")))
      .hint("give one of these codes");
}

std::vector<TextPiece> make_text_pieces(std::string_view text, const TextPieceOptions& options,
                                        const Tokenizer& tokenizer) {
  return PieceMaker(options, tokenizer).make(text);
}

std::string calm_ending(std::string_view normalised) {
  std::u32string points = decode_utf8(normalised);
  char32_t mark = 0;
  while (!points.empty()) {
    const char32_t last = points.back();
    if (is_question_or_call(last)) {
      mark = last;
    } else if (!provokes(last)) {
      break;
    }
    points.pop_back();
  }
  if (mark != 0 && !points.empty()) points.push_back(mark);
  return encode_utf8(points);
}

}  // namespace tandem
