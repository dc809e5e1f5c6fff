#include "generate/text_pieces.h"

#include <gtest/gtest.h>

#include "support/captured.h"
#include "support/tiny_xtts.h"
#include "text/clean_characters.h"
#include "util/text.h"

namespace tandem {
namespace {

const Tokenizer& tokenizer() {
  static const auto made = parse_tokenizer(tiny_vocabulary(), "vocab.json");
  return *made;
}

std::vector<TextPiece> pieces_of(const std::string& text, TextPieceOptions options = {}) {
  return make_text_pieces(text, options, tokenizer());
}

std::string long_text(size_t characters) {
  std::string text;
  for (int i = 0; text.size() < characters; ++i) {
    text += "This is sentence number " + std::to_string(i) + " of a rather long story. ";
  }
  text.resize(characters);
  return text;
}

TEST(TextPieces, SplitsAtSentencesThenCleans) {
  const auto pieces = pieces_of(long_text(600));
  ASSERT_GE(pieces.size(), 3);
  for (const TextPiece& piece : pieces) {
    EXPECT_LE(decode_utf8(piece.text).size(), 250);
    EXPECT_EQ(piece.normalised, lower(piece.normalised));
    EXPECT_EQ(piece.ids.front(), tokenizer().id_of("[en]"));
  }
  EXPECT_TRUE(pieces[0].ends_sentence);
  EXPECT_NE(pieces[0].normalised.find("number zero of"), std::string::npos) << pieces[0].normalised;
}

TEST(TextPieces, TenThousandCharactersComeOutWholeAndWithinTheLimits) {
  for (const int64_t limit : {402, 60, 12}) {
    const std::string text = long_text(10000);
    std::string joined;
    for (const TextPiece& piece : pieces_of(text, {.token_limit = limit})) {
      EXPECT_LT(static_cast<int64_t>(piece.ids.size()), limit);
      joined += piece.text;
    }
    std::string expected = text;
    std::erase(expected, ' ');
    std::erase(joined, ' ');
    EXPECT_EQ(joined, expected) << limit;
  }
}

TEST(TextPieces, CutsAWordWithoutSpacesAndATextWithSplittingOff) {
  const std::string word(1000, 'a');
  for (const bool split : {true, false}) {
    size_t letters = 0;
    for (const TextPiece& piece : pieces_of(word, {.split = split, .token_limit = 60})) {
      EXPECT_LT(piece.ids.size(), 60);
      letters += piece.text.size();
    }
    EXPECT_EQ(letters, 1000);
  }
  EXPECT_EQ(pieces_of(long_text(390), {.split = false}).size(), 1);
}

TEST(TextPieces, CutsWhatGrowsWhenItIsSpoken) {
  std::string digits;
  for (int i = 0; i < 40; ++i) digits += "98765 ";
  const auto pieces = pieces_of(digits, {.token_limit = 100000});
  EXPECT_GT(pieces.size(), 1);
  for (const TextPiece& piece : pieces) EXPECT_LE(piece.characters, 500);
}

TEST(TextPieces, RefusesATextWithNothingToSay) {
  for (const char* text : {"", "   \n ", "...", "\"?!\"", "— …"}) {
    const Error error = error_of([&] { pieces_of(text); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << text;
    EXPECT_NE(std::string(error.what()).find("nothing to say"), std::string::npos);
  }
  EXPECT_EQ(pieces_of("Hello. ... \"!\" World.", {.token_limit = 14}).size(), 2);
}

TEST(TextPieces, DropsTheEndingsThatMakeXttsGoOn) {
  EXPECT_EQ(calm_ending("hello."), "hello");
  EXPECT_EQ(calm_ending("really?\""), "really?");
  EXPECT_EQ(calm_ending("really?”"), "really?");
  EXPECT_EQ(calm_ending("what?!"), "what?");
  EXPECT_EQ(calm_ending("no!!!"), "no!");
  EXPECT_EQ(calm_ending("well, …"), "well");
  EXPECT_EQ(calm_ending("a (b)."), "a (b");
  EXPECT_EQ(calm_ending("नमस्ते।"), "नमस्ते");
  EXPECT_EQ(calm_ending("e.g. this"), "e.g. this");
  EXPECT_EQ(calm_ending("?!"), "");
  EXPECT_EQ(pieces_of("Is it? \"Yes.\"").front().normalised, "is it? yes");
}

TEST(TextPieces, KeepsTheEndingsForAModelThatLearnedThem) {
  EXPECT_EQ(pieces_of("Is it? \"Yes.\"", {.keeps_endings = true}).front().normalised,
            "is it? yes.");
}

TEST(TextPieces, CutsSentencesLongerThanTheModelLearnedWhereAReaderPauses) {
  const std::string text =
      "In the other room, a mirror that covered the whole wall, was broken, and on the floor lay "
      "rags, chairs and old clothes. It was late.";
  const auto cut = [&](int64_t longest, bool split = true) {
    std::vector<std::string> texts;
    for (const TextPiece& piece :
         pieces_of(text, {.split = split, .keeps_endings = true, .longest = longest}))
      texts.push_back(piece.text);
    return texts;
  };
  EXPECT_EQ(cut(0).size(), 1u);
  EXPECT_EQ(cut(0), cut(500));
  EXPECT_EQ(cut(20, /*split=*/false).size(), 1u);
  EXPECT_EQ(cut(100), (std::vector<std::string>{
                          "In the other room, a mirror that covered the whole wall, was broken,",
                          "and on the floor lay rags, chairs and old clothes. It was late."}));
  std::string all;
  for (const std::string& part : cut(40)) {
    EXPECT_LE(part.size(), 40u) << part;
    EXPECT_GE(part.size(), 8u) << part;
    all += (all.empty() ? "" : " ") + part;
  }
  EXPECT_EQ(all, text) << "nothing is lost";
  const auto pieces = pieces_of(text, {.keeps_endings = true, .longest = 100});
  EXPECT_FALSE(pieces[0].ends_sentence) << "a comma is no full stop";
  EXPECT_TRUE(pieces[1].ends_sentence);
  // A word without spaces stays whole.
  EXPECT_EQ(pieces_of("Donaudampfschifffahrt", {.longest = 5}).size(), 1u);
}

TEST(TextPieces, CompatKeepsTheEndingsAndCoquisCleaning) {
  EXPECT_EQ(pieces_of("Is it? \"Yes.\"", {.coqui = true}).front().normalised, "is it? yes.");
  // German "Komma" keeps its capital in Coqui's cleaning.
  const TextPieceOptions german{.language = "de", .coqui = true};
  EXPECT_EQ(pieces_of("3,5", german).front().normalised, "drei Komma fünf");
  EXPECT_EQ(pieces_of("3,5", {.language = "de"}).front().normalised, "drei komma fünf");
}

TEST(TextPieces, CompatLowersBeforeItCleansAsTheReferenceDoes) {
  // U+0130 lowered by itself is i and a dot above; the Turkish cleaner alone makes a plain i of it.
  const auto compat = pieces_of("\u0130yi", {.language = "tr", .coqui = true});
  EXPECT_EQ(compat.at(0).normalised, "i\u0307yi");
  EXPECT_EQ(pieces_of("\u0130yi", {.language = "tr"}).at(0).normalised, "iyi");
}

TEST(TextPieces, NamesTheModelsLanguagesForOneItDoesNotSpeak) {
  EXPECT_EQ(speech_language("EN-us", {}), "en");
  EXPECT_EQ(speech_language("zh", {"en", "zh-cn"}), "zh-cn");
  EXPECT_EQ(speech_language("vi", {"en", "vi"}), "vi");
  const Error error = error_of([] { speech_language("xx", {"en", "de"}); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_STREQ(error.what(), "the model does not speak `xx`; it speaks en, de.");
  EXPECT_EQ(error_of([] { speech_language("fr", {"en", "de"}); }).kind(), ErrorKind::data);
  EXPECT_NE(std::string(error_of([] { speech_language("xx", {}); }).what()).find("zh-cn"),
            std::string::npos);
}

TEST(TextPieces, SpeaksALanguageOnlyTheModelKnowsAsItIsWritten) {
  const auto pieces = pieces_of("Xin chào 5.", {.language = "vi", .languages = {"en", "vi"}});
  EXPECT_EQ(pieces.front().normalised, "Xin chào 5");
}

TEST(TextPieces, RefusesAVocabularyThatIsNotTheModels) {
  const Error error = error_of([] { pieces_of("hello", {.token_rows = 10}); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_NE(std::string(error.what()).find("do not belong together"), std::string::npos);
}

}  // namespace
}  // namespace tandem
