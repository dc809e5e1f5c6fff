#include "text/bpe_train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/captured.h"
#include "text/tokenizer_files.h"

namespace tandem {
namespace {

using nlohmann::json;

const std::vector<std::string> texts = {"low low low low low lower lower", "newest newest newest",
                                        "newest newest newest widest widest widest",
                                        "été naïve été"};

BpeTrainOptions options_for(int64_t size) { return {.vocabulary_size = size}; }

TEST(BpeTraining, LearnsTheMostFrequentPairsFirst) {
  const json file = json::parse(train_bpe(texts, options_for(21 + 14 + 4)));
  // es: 9; st: 9, larger ids; then est, and lo before ow by ids.
  EXPECT_EQ(file["model"]["merges"], json({"e s", "es t", "l o", "lo w"}));
}

TEST(BpeTraining, IdsAreDenseAndSpecialTokensComeFirst) {
  const std::string made = train_bpe(texts, options_for(45));
  const json file = json::parse(made);
  std::set<int> ids;
  for (const auto& [token, id] : file["model"]["vocab"].items()) ids.insert(id.get<int>());
  EXPECT_EQ(ids.size(), 45U);
  EXPECT_EQ(*ids.rbegin(), 44);
  const auto tokenizer = parse_tokenizer(made, "made");
  EXPECT_EQ(tokenizer->vocabulary_size(), 45);
  EXPECT_EQ(tokenizer->id_of("[STOP]"), 0);
  EXPECT_EQ(tokenizer->id_of("[UNK]"), 1);
  EXPECT_EQ(tokenizer->id_of("[SPACE]"), 2);
  EXPECT_EQ(tokenizer->id_of("[START]"), 3);
  EXPECT_EQ(tokenizer->id_of("[hi]"), 20);
  EXPECT_EQ(tokenizer->unknown_id(), 1);
  const Ids ids_of_text = tokenizer->encode(xtts_input("newest low", "en"));
  EXPECT_EQ(ids_of_text[0], tokenizer->id_of("[en]"));
  EXPECT_EQ(tokenizer->id_of("low"), ids_of_text.back());
}

TEST(BpeTraining, TheOrderOfTheTextsDoesNotMatter) {
  std::vector<std::string> other = texts;
  std::reverse(other.begin(), other.end());
  EXPECT_EQ(train_bpe(texts, options_for(44)), train_bpe(other, options_for(44)));
}

TEST(BpeTraining, RunsOfOneLetterAreCountedRight) {
  const std::vector<std::string> runs = {"aaaaaaa aaaaaaa aaab aaab"};
  const auto tokenizer = parse_tokenizer(train_bpe(runs, options_for(21 + 2 + 3)), "made");
  // aa, then aaaa (two in aaaaaaa is one merge each), then what is left of them.
  EXPECT_GE(tokenizer->id_of("aa"), 0);
  EXPECT_EQ(tokenizer->encode("aaaaaaa").size(), 2U);
}

TEST(BpeTraining, SaysWhenTheTextsDoNotGiveEnough) {
  const Error error = error_of([] { train_bpe(texts, options_for(1000)); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("tokens; 1000 were asked for"), std::string::npos)
      << error.what();
  // The number in the hint is the largest that works.
  const std::string sentence = error.what();
  const int64_t most = std::stoll(sentence.substr(sentence.find("only ") + 5));
  EXPECT_NO_THROW(train_bpe(texts, options_for(most)));
  EXPECT_NE(error.hint().find(std::to_string(most)), std::string::npos);
}

TEST(BpeTraining, SaysWhenTheCharactersAloneAreTooMany) {
  const Error error = error_of([] { train_bpe(texts, options_for(30)); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("a vocabulary of 30 tokens is too small"),
            std::string::npos);
}

TEST(BpeTraining, KeepsTheMostFrequentCharacters) {
  BpeTrainOptions options = options_for(21 + 4);
  options.largest_alphabet = 4;
  const auto tokenizer = parse_tokenizer(train_bpe(texts, options), "made");
  for (const char* kept : {"e", "w", "s", "t"}) EXPECT_GE(tokenizer->id_of(kept), 21) << kept;
  EXPECT_EQ(tokenizer->id_of("ï"), -1);
}

TEST(BpeTraining, RefusesSpecialTokensThatCannotBe) {
  BpeTrainOptions options = options_for(40);
  options.special_tokens = {"[STOP]"};
  EXPECT_EQ(error_of([&] { train_bpe(texts, options); }).kind(), ErrorKind::config);
  options.special_tokens = {"[UNK]", "x", "x"};
  const Error error = error_of([&] { train_bpe(texts, options); });
  EXPECT_NE(std::string(error.what()).find("`x` is empty or given twice"), std::string::npos);
}

TEST(BpeTraining, NeverMakesASpecialTokenOfLetters) {
  BpeTrainOptions options = options_for(2 + 3 + 1);
  options.special_tokens = {"[UNK]", "low"};
  const json file = json::parse(train_bpe({"low low low"}, options));
  EXPECT_EQ(file["model"]["merges"], json({"l o"}));
  options.vocabulary_size = 8;
  EXPECT_EQ(error_of([&] { train_bpe({"low low low"}, options); }).kind(), ErrorKind::data);
}

TEST(BpeTraining, SurvivesBrokenTexts) {
  const auto made = train_bpe({"ab\xff ab\xff", ""}, options_for(21 + 3 + 1));
  EXPECT_EQ(parse_tokenizer(made, "made")->vocabulary_size(), 25);
}

class Extending : public testing::Test {
 protected:
  json before = json::parse(read_file(tokenizer_fixture("like_xtts.json")));
  std::vector<std::string> fresh = {"ŋgolo ŋgolo ŋgolo xylophone xylophone", "xylophone ŋgolo the"};
};

TEST_F(Extending, KeepsEveryIdAndAddsAfterThem) {
  const json after = json::parse(extend_vocabulary(before.dump(), fresh, 10));
  for (const auto& [token, id] : before["model"]["vocab"].items()) {
    EXPECT_EQ(after["model"]["vocab"].at(token), id) << token;
  }
  EXPECT_EQ(after["model"]["vocab"].size(), before["model"]["vocab"].size() + 10);
  const int64_t end = tokenizer_of(before)->vocabulary_size();
  const auto tokenizer = tokenizer_of(after);
  EXPECT_EQ(tokenizer->vocabulary_size(), end + 10);
  EXPECT_EQ(tokenizer->id_of("ŋ"), end);  // characters first
  EXPECT_EQ(tokenizer->encode("ŋgolo").size(), 1U);
  const json old_merges = before["model"]["merges"];
  for (size_t i = 0; i < old_merges.size(); ++i) {
    ASSERT_EQ(after["model"]["merges"][i], old_merges[i]);
  }
}

TEST_F(Extending, TextsWithoutNewTokensKeepTheirIds) {
  const auto old_one = tokenizer_of(before);
  const auto new_one = parse_tokenizer(extend_vocabulary(before.dump(), fresh, 10), "made");
  const json expected = expected_ids();
  size_t kept = 0;
  for (const json& text : expected.at("texts")) {
    const Ids ids = new_one->encode(text.get_ref<const std::string&>());
    if (std::any_of(ids.begin(), ids.end(),
                    [&](int32_t id) { return id >= old_one->vocabulary_size(); })) {
      continue;
    }
    ++kept;
    EXPECT_EQ(ids, old_one->encode(text.get_ref<const std::string&>()));
  }
  EXPECT_GT(kept, 200U);
}

TEST_F(Extending, AddedTokensOutsideTheModelKeepTheirIds) {
  json file = small_bpe();
  file["added_tokens"] = {added_token("[x]")};
  file["model"]["merges"] = json::array({json::array({"a", "b"})});
  const auto old_one = tokenizer_of(file);
  const std::string made = extend_vocabulary(file.dump(), {"dede dede dede"}, 2);
  const auto new_one = parse_tokenizer(made, "made");
  EXPECT_EQ(new_one->encode("[x]"), old_one->encode("[x]"));
  EXPECT_EQ(new_one->id_of("de"), old_one->vocabulary_size());
  EXPECT_EQ(json::parse(made)["model"]["merges"][1], json::array({"d", "e"}));
}

TEST_F(Extending, SaysWhatItCannotDo) {
  const auto sentence = [&](const json& file, int64_t extra) {
    const Error error = error_of([&] { extend_vocabulary(file.dump(), fresh, extra); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    return std::string(error.what());
  };
  EXPECT_NE(sentence(before, 5000).find("new tokens; 5000 were asked for"), std::string::npos);
  EXPECT_NE(sentence(before, -1).find("-1 tokens cannot be added"), std::string::npos);
  EXPECT_NE(sentence(small_unigram(), 2).find("kind `Unigram` cannot be extended"),
            std::string::npos);
  json marked = small_bpe();
  marked["model"]["end_of_word_suffix"] = "</w>";
  EXPECT_NE(sentence(marked, 2).find("marks inside words"), std::string::npos);
}

}  // namespace
}  // namespace tandem
