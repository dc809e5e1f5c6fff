// The steps of the pipeline one by one: normalisers, pre-tokenisers, decoders, characters.
#include <gtest/gtest.h>

#include "text/charsmap.h"
#include "text/token_trie.h"
#include "text/token_unicode.h"
#include "text/tokenizer_files.h"

namespace tandem {
namespace {

using nlohmann::json;

// The text the normaliser makes, read back from a model that knows every byte.
std::string normalized(const json& normalizer, const std::string& text) {
  json vocabulary = json::array({json::array({"<unk>", 0})});
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    vocabulary.push_back({name, -1});
  }
  const json file = {
      {"normalizer", normalizer},
      {"model",
       {{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", true}, {"vocab", vocabulary}}}};
  std::string out;
  for (const int32_t id : tokenizer_of(file)->encode(text))
    out.push_back(static_cast<char>(id - 1));
  return out;
}

json replace(const char* kind, const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
}

TEST(TokenNormalizer, KnowsTheFormsOfUnicode) {
  EXPECT_EQ(normalized({{"type", "NFC"}}, "e\u0301"), "\u00e9");
  EXPECT_EQ(normalized({{"type", "NFD"}}, "\u00e9"), "e\u0301");
  EXPECT_EQ(normalized({{"type", "NFKC"}}, "\uff21\ufb01\u00bd"), "Afi1\u20442");
  EXPECT_EQ(normalized({{"type", "NFKD"}}, "\ufb01\u00e9"), "fie\u0301");
  EXPECT_EQ(normalized({{"type", "NFKC"}}, "\U0001f16c"), "\U0001f16c");  // younger than Unicode 9
  EXPECT_EQ(normalized({{"type", "Lowercase"}}, "ÀΣİ\uA7CB"), "àσi\u0307\u0264");
}

TEST(TokenNormalizer, StripsPrependsAndReplaces) {
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}}, " a "),
            "a ");
  EXPECT_EQ(
      normalized({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}}, " a\u3000\n"),
      " a");
  EXPECT_EQ(normalized({{"type", "Prepend"}, {"prepend", "__"}}, "a"), "__a");
  EXPECT_EQ(normalized(replace("String", "ab", "c"), "ababa"), "cca");
  EXPECT_EQ(normalized(replace("Regex", " {2,}", "_"), "a  b c   "), "a_b c_");
  EXPECT_EQ(normalized(replace("Regex", "\\s+", "_"), "a \n\u3000b"), "a_b");
  EXPECT_EQ(normalized(replace("Regex", "a{2}", "x"), "aaaaa"), "xxa");
  EXPECT_EQ(normalized(replace("Regex", "a{2,3}", "x"), "aaaaaaaa"), "xxx");
  EXPECT_EQ(normalized(replace("Regex", "\\.", "!"), "a.b"), "a!b");
}

TEST(TokenNormalizer, MapsCharactersOfASentencepieceModel) {
  const json file = json::parse(read_file(tokenizer_fixture("like_t5.json")));
  const json map = file["normalizer"]["normalizers"][0];
  EXPECT_EQ(normalized(map, "\uff21\u00bd"), "A1\u20442");
  EXPECT_EQ(normalized(map, "e\u0301"), "\u00e9");
  EXPECT_EQ(normalized(map,
                       "a\tb\x01"
                       "c"),
            "a bc");
  EXPECT_EQ(normalized(map, "\r\n"), " ");          // one cluster: the rest of it is dropped
  EXPECT_EQ(normalized(map, "\u00aa\u0334"), "a");  // the same with a mark
  EXPECT_EQ(normalized(map, "\u00aa\U0001d165"),
            "a\U0001d165");  // six bytes: character by character
}

std::vector<std::string> clusters(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = grapheme_end(text, at);
    out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

TEST(Graphemes, FollowTheRules) {
  using List = std::vector<std::string>;
  EXPECT_EQ(clusters("ab\r\nc"), (List{"a", "b", "\r\n", "c"}));
  EXPECT_EQ(clusters("e\u0301x"), (List{"e\u0301", "x"}));
  EXPECT_EQ(clusters("👩‍🚀👍🏽"), (List{"👩‍🚀", "👍🏽"}));
  EXPECT_EQ(clusters("🇩🇪🇫🇷🇺"), (List{"🇩🇪", "🇫🇷", "🇺"}));
  EXPECT_EQ(clusters("\u1100\u1161\u11a8각"), (List{"\u1100\u1161\u11a8", "각"}));
  EXPECT_EQ(clusters("क्षि"), (List{"क्षि"}));
  EXPECT_EQ(clusters("क्\u200cष"), (List{"क्\u200c", "ष"}));
  EXPECT_EQ(clusters("\u0600١a"), (List{"\u0600١", "a"}));
}

TEST(Characters, SurviveAnyBytes) {
  const std::string bad = "\xc3\x28\xe2\x82\xf0\x9f\x98\xed\xa0\x80\xf5\x80\xff";
  std::string storage;
  const std::string_view valid = valid_utf8(bad, storage);
  EXPECT_EQ(count_characters(valid), bad.size());
  EXPECT_EQ(valid_utf8(valid, storage).data(), valid.data());
  EXPECT_EQ(character_before("a\u20ac", 4).code, U'\u20ac');
  EXPECT_EQ(character_before("\x80\x80", 2).code, U'\ufffd');
}

TEST(Characters, HaveTheClassesOfRegularExpressions) {
  for (const char32_t code :
       {U'a', U'_', U'é', U'٣', U'\u0301', U'\u200d', U'\u203f', U'字', U'ª'}) {
    EXPECT_TRUE(is_word(code)) << static_cast<uint32_t>(code);
  }
  EXPECT_TRUE(is_word(0x1C8A));  // of Unicode 16
  for (const char32_t code : {U'-', U' ', U'½', U'€', U'😀', U'\u200b', U'\ue000'}) {
    EXPECT_FALSE(is_word(code)) << static_cast<uint32_t>(code);
  }
  for (const char32_t code : {U' ', U'\t', U'\x0b', U'\x85', U'\u00a0', U'\u2028', U'\u3000'}) {
    EXPECT_TRUE(is_space(code)) << static_cast<uint32_t>(code);
  }
  EXPECT_FALSE(is_space(U'\u200b'));
  EXPECT_FALSE(is_space(U'\x1f'));
}

Ids with_scheme(const char* scheme, const std::string& text) {
  json file = small_unigram();
  file["pre_tokenizer"]["prepend_scheme"] = scheme;
  file["added_tokens"] = {added_token("[x]")};
  return tokenizer_of(file)->encode(text);
}

TEST(Pretokenizer, MetaspaceMarksTheFirstTheOthersOrNone) {
  EXPECT_EQ(with_scheme("always", "a[x]a"), (Ids{5, 6, 5}));
  EXPECT_EQ(with_scheme("first", "a[x]a"), (Ids{5, 6, 2}));
  EXPECT_EQ(with_scheme("never", "a[x]a"), (Ids{2, 6, 2}));
  EXPECT_EQ(with_scheme("never", " a  b"), (Ids{5, 1, 1, 3}));
}

TEST(Pretokenizer, FirstIsTheFirstCharacterOfTheInput) {
  json file = small_unigram();
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "WhitespaceSplit"}},
        {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}}}}};
  EXPECT_EQ(tokenizer_of(file)->encode("a b"), (Ids{5, 3}));
  EXPECT_EQ(tokenizer_of(file)->encode(" a b"), (Ids{2, 3}));
}

TEST(Pretokenizer, ByteLevelCutsAsGpt2Does) {
  json file = small_bpe();
  file["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}};
  file["decoder"] = {{"type", "ByteLevel"}};
  json vocabulary = {{"[UNK]", 0}};
  const std::vector<std::string> words = {"Ġ", "a", "b", "'", "s", "1", "Ġa", "'s", "ĠĠ"};
  for (size_t i = 0; i < words.size(); ++i) vocabulary[words[i]] = i + 1;
  file["model"]["vocab"] = vocabulary;
  file["model"]["merges"] = {"Ġ a", "' s", "Ġ Ġ"};
  const auto tokenizer = tokenizer_of(file);
  EXPECT_EQ(tokenizer->encode("a's   a1"), (Ids{7, 8, 9, 7, 6}));
  EXPECT_EQ(tokenizer->decode({7, 8, 9, 7, 6}), " a's   a1");
}

std::string decoded(const json& decoder, const std::vector<std::string>& tokens) {
  json file = small_bpe();
  json vocabulary = {{"[UNK]", 0}};
  Ids ids;
  for (size_t i = 0; i < tokens.size(); ++i) {
    vocabulary[tokens[i]] = i + 1;
    ids.push_back(static_cast<int32_t>(i + 1));
  }
  file["model"]["vocab"] = vocabulary;
  file["model"]["merges"] = json::array();
  file["decoder"] = decoder;
  return tokenizer_of(file)->decode(ids);
}

TEST(TokenDecoder, UndoesWhatTheKindsDo) {
  EXPECT_EQ(decoded(nullptr, {"a", "b"}), "a b");
  EXPECT_EQ(decoded({{"type", "Fuse"}}, {"a", "b"}), "ab");
  EXPECT_EQ(decoded({{"type", "BPEDecoder"}, {"suffix", "</w>"}}, {"a</w>", "b", "c</w>"}), "a bc");
  EXPECT_EQ(decoded({{"type", "Metaspace"}, {"replacement", "▁"}}, {"▁a", "▁b", "c"}), "a bc");
  EXPECT_EQ(decoded({{"type", "ByteFallback"}}, {"<0xE2>", "<0x82>", "<0xAC>", "a"}), "€a");
  EXPECT_EQ(decoded({{"type", "ByteFallback"}}, {"<0xE2>", "<0x82>", "<0xZZ>"}),
            "\ufffd\ufffd<0xZZ>");
  EXPECT_EQ(decoded(replace("String", "▁", " "), {"▁a", "▁▁b"}), " a  b");
  EXPECT_EQ(
      decoded({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 2}}, {"  a   ", " "}),
      " a ");
  EXPECT_EQ(decoded({{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}},
                    {"do", "##n", "it", "."}),
            "don it.");
}

TEST(TokenTrie, FindsAllPrefixes) {
  const TokenTrie trie({{"a", 1}, {"abc", 2}, {"", 3}, {"a", 4}, {"b", 5}});
  std::vector<std::pair<size_t, int32_t>> found;
  trie.prefixes("xabcd", 1, [&](size_t end, int32_t value) { found.emplace_back(end, value); });
  EXPECT_EQ(found, (std::vector<std::pair<size_t, int32_t>>{{2, 4}, {4, 2}}));
  EXPECT_EQ(trie.value_of("abc"), 2);
  EXPECT_EQ(trie.value_of("ab"), TokenTrie::none);
  EXPECT_TRUE(TokenTrie().empty());
  EXPECT_EQ(TokenTrie().longest("a", 0).second, TokenTrie::none);
}

}  // namespace
}  // namespace tandem
