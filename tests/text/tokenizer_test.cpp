#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/temporary_folder.h"
#include "text/tokenizer_files.h"

namespace tandem {
namespace {

TEST(Tokenizer, SizeIsOneMoreThanTheLargestIdDespiteHoles) {
  const auto tokenizer = tokenizer_of(small_bpe());
  EXPECT_EQ(tokenizer->vocabulary_size(), 11);
  EXPECT_EQ(tokenizer->unknown_id(), 0);
  EXPECT_EQ(tokenizer->id_of("abc"), 10);
  EXPECT_EQ(tokenizer->id_of("zz"), -1);
}

TEST(Tokenizer, WordsNeverMergeAcrossSpacesOrSigns) {
  const auto tokenizer = tokenizer_of(small_bpe());
  EXPECT_EQ(tokenizer->encode("ab abc"), (Ids{6, 10}));
  EXPECT_EQ(tokenizer->encode("ab-c"), (Ids{6, 0, 3}));
  EXPECT_EQ(tokenizer->encode("ab\u200dc"), (Ids{6, 0, 3}));  // a joiner is part of a word
  EXPECT_EQ(tokenizer->encode("  \n\t"), Ids{});
  EXPECT_EQ(tokenizer->encode(""), Ids{});
}

TEST(Tokenizer, LongWordsMergeAsShortOnesDo) {
  const auto tokenizer = tokenizer_of(small_bpe());
  std::string word;
  Ids expected;
  for (int i = 0; i < 1000; ++i) {
    word += "abcab";
    expected.insert(expected.end(), {10, 6});
  }
  EXPECT_EQ(tokenizer->encode(word), expected);
}

TEST(Tokenizer, BrokenUtf8IsReplacedNotTrusted) {
  const auto tokenizer = tokenizer_of(small_bpe());
  EXPECT_EQ(tokenizer->encode("a\xff"
                              "b"),
            (Ids{1, 0, 2}));
  EXPECT_EQ(tokenizer->encode("ab\xe2\x82"), (Ids{6, 0, 0}));
}

TEST(Tokenizer, AddedTokensComeFirstLongestFirst) {
  nlohmann::json file = small_bpe();
  file["added_tokens"] = {added_token("bc"), added_token("bcd"), added_token("[en]")};
  const auto tokenizer = tokenizer_of(file);
  // Not in the model: ids from the number of the model's tokens on, which is what 8 is here.
  EXPECT_EQ(tokenizer->encode("abcd"), (Ids{1, 9}));
  EXPECT_EQ(tokenizer->encode("[en]abce"), (Ids{10, 1, 8, 5}));
}

TEST(Tokenizer, AddedTokensKeepTheirFlags) {
  nlohmann::json file = small_bpe();
  file["added_tokens"] = {added_token("d", {{"single_word", true}})};
  EXPECT_EQ(tokenizer_of(file)->encode("d ad da"), (Ids{4, 1, 4, 4, 1}));
  file["pre_tokenizer"] = nullptr;
  file["added_tokens"] = {added_token("d", {{"lstrip", true}})};
  EXPECT_EQ(tokenizer_of(file)->encode("a d a"), (Ids{1, 4, 0, 1}));
  file["added_tokens"] = {added_token("d", {{"rstrip", true}})};
  EXPECT_EQ(tokenizer_of(file)->encode("a d a"), (Ids{1, 0, 4, 1}));
  file["normalizer"] = {{"type", "Lowercase"}};
  file["added_tokens"] = {added_token("ABC", {{"normalized", true}})};
  EXPECT_EQ(tokenizer_of(file)->encode("aBc"), Ids{8});
  file["added_tokens"] = {added_token("ABC")};
  EXPECT_EQ(tokenizer_of(file)->encode("aBc"), Ids{10});
}

TEST(Tokenizer, DecodeLeavesSpecialTokensAndHolesOut) {
  nlohmann::json file = small_bpe();
  file["added_tokens"] = {added_token("[UNK]", {{"special", true}}), added_token("[x]")};
  EXPECT_EQ(tokenizer_of(file)->decode({6, 0, 8, 9, 7777, -3, 3}), "ab [x] c");
}

TEST(Tokenizer, UnigramTakesTheHighestSum) {
  const auto tokenizer = tokenizer_of(small_unigram());
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{1, 4}));  // ▁ ab (-6) beats ▁a b (-6.5)
  EXPECT_EQ(tokenizer->encode("a a"), (Ids{5, 5}));
  EXPECT_EQ(tokenizer->encode("axyza"), (Ids{5, 0, 2}));  // unknown neighbours are one
  EXPECT_EQ(tokenizer->decode({5, 1, 4}), "a ab");
}

TEST(Tokenizer, TemplatePutsItsTokensAround) {
  nlohmann::json file = small_bpe();
  file["post_processor"] = nlohmann::json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "s", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "e", "type_id": 0}}], "pair": [],
    "special_tokens": {"s": {"id": "s", "ids": [20], "tokens": ["s"]},
                       "e": {"id": "e", "ids": [21, 22], "tokens": ["e", "f"]}}})");
  const auto tokenizer = tokenizer_of(file);
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{20, 6, 21, 22}));
  EXPECT_EQ(tokenizer->encode(""), (Ids{20, 21, 22}));
  EXPECT_EQ(tokenizer->vocabulary_size(), 23);
}

TEST(Tokenizer, ServesManyThreads) {
  const auto tokenizer = load_tokenizer(tokenizer_fixture("like_t5.json"));
  const nlohmann::json expected = expected_ids();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < 100; ++i) {
        const Ids ids = tokenizer->encode(expected.at("texts")[i].get_ref<const std::string&>());
        wrong += ids != expected.at("like_t5")[i].get<Ids>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ByteTokenizer, BytesAreTheirIds) {
  const auto tokenizer = byte_tokenizer();
  EXPECT_EQ(tokenizer->encode("a\xff\0"), (Ids{97, 255}));
  EXPECT_EQ(tokenizer->decode({97, 255, 256, -1, 98}),
            "a\xff"
            "b");
  EXPECT_EQ(tokenizer->vocabulary_size(), 256);
  EXPECT_EQ(tokenizer->unknown_id(), -1);
  EXPECT_EQ(tokenizer->id_of("b"), 98);
  EXPECT_EQ(tokenizer->id_of("bb"), -1);
}

TEST(XttsInput, NamesTheLanguageAndTheSpaces) {
  EXPECT_EQ(xtts_input("a b  c", "en"), "[en]a[SPACE]b[SPACE][SPACE]c");
  EXPECT_EQ(xtts_input("", "pt-br"), "[pt]");
  EXPECT_EQ(xtts_input("ni3 hao3", "zh"), "[zh-cn]ni3[SPACE]hao3");
  EXPECT_EQ(xtts_input("ni3", "zh-cn"), "[zh-cn]ni3");
}

}  // namespace
}  // namespace tandem
