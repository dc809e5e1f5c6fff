// Every sentence a broken or unsupported tokenizer file earns.
#include <gtest/gtest.h>

#include "support/captured.h"
#include "support/temporary_folder.h"
#include "text/tokenizer_files.h"

namespace tandem {
namespace {

using nlohmann::json;

void expect_refusal(const json& file, ErrorKind kind, const std::string& part) {
  const Error error = error_of([&] { tokenizer_of(file)->encode("a b"); });
  EXPECT_EQ(error.kind(), kind) << error.what();
  EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("`t.json`"), std::string::npos) << error.what();
}

// `change` gives each bad file a name for itself: the JSON pointer that is overwritten.
void expect_corrupt(json file, const std::string& pointer, const json& value,
                    const std::string& part) {
  file[json::json_pointer(pointer)] = value;
  expect_refusal(file, ErrorKind::corrupt, part);
}

void expect_unsupported(json file, const std::string& pointer, const json& value,
                        const std::string& part) {
  file[json::json_pointer(pointer)] = value;
  expect_refusal(file, ErrorKind::data, part);
}

TEST(TokenizerReject, FilesThatCannotBeRead) {
  TestFolder folder;
  EXPECT_EQ(error_of([&] { load_tokenizer((folder / "none.json").string()); }).kind(),
            ErrorKind::io);
  EXPECT_EQ(error_of([&] { load_tokenizer(folder.path().string()); }).kind(), ErrorKind::io);
  const std::string large = folder.write("large.json", "");
  std::filesystem::resize_file(large, uint64_t{257} << 20);
  const Error error = error_of([&] { load_tokenizer(large); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("269484032 bytes"), std::string::npos) << error.what();
}

TEST(TokenizerReject, WhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "\xff", "{\"a\": 1} x"}) {
    const Error error = error_of([&] { parse_tokenizer(text, "t.json"); });
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_NE(std::string(error.what()).find("`t.json` is not JSON: parse error at line"),
              std::string::npos)
        << error.what();
  }
}

TEST(TokenizerReject, PlacesOfTheWrongType) {
  expect_refusal(json::array(), ErrorKind::corrupt, "has empty array at /, where an object was");
  expect_refusal(json::object(), ErrorKind::corrupt, "an object with a member `model`");
  expect_corrupt(small_bpe(), "/model", 7, "has `7` at /model, where an object was expected");
  expect_corrupt(small_bpe(), "/model/vocab", json::array(), "at /model/vocab, where an object");
  expect_corrupt(small_bpe(), "/model/vocab/a", "x", "at /model/vocab/a, where a whole number");
  expect_corrupt(small_bpe(), "/model/vocab/a", -1, "whole number from 0 to 16777215");
  expect_corrupt(small_bpe(), "/model/vocab/a", 1e9, "whole number from 0 to 16777215");
  expect_corrupt(small_bpe(), "/model/vocab/a", uint64_t{1} << 63, "from 0 to 16777215");
  expect_corrupt(small_bpe(), "/model/merges", json::object(), "/model/merges, where an array");
  expect_corrupt(small_bpe(), "/model/merges/1", "ab", "/model/merges/1, where two tokens");
  expect_corrupt(small_bpe(), "/model/merges/1", "a b c", "two tokens with one space");
  expect_corrupt(small_bpe(), "/model/merges/1", json::array({"a"}), "a merge: \"a b\" or");
  expect_corrupt(small_bpe(), "/model/merges/1", "a q", "a merge with `q` in /model/vocab");
  expect_corrupt(small_bpe(), "/model/merges/1", "b c", "a merge with `bc` in /model/vocab");
  expect_corrupt(small_bpe(), "/model/unk_token", "[no]", "where a token of /model/vocab");
  expect_corrupt(small_bpe(), "/model/fuse_unk", 1, "where true or false was expected");
  expect_corrupt(small_bpe(), "/model/dropout", "x", "a number or null");
  expect_corrupt(small_bpe(), "/added_tokens", json::object(), "/added_tokens, where an array");
  expect_corrupt(small_bpe(), "/added_tokens", json::array({{{"id", 0}}}), "member `content`");
  json prefixed = small_bpe();
  prefixed["model"]["continuing_subword_prefix"] = "####";
  expect_refusal(prefixed, ErrorKind::corrupt, "whose second part starts with the prefix");
}

TEST(TokenizerReject, UnigramsThatCannotBe) {
  expect_corrupt(small_unigram(), "/model/vocab/1", "a", "a piece and its score");
  expect_corrupt(small_unigram(), "/model/unk_id", 6, "whole number from 0 to 5");
  expect_corrupt(small_unigram(), "/model/vocab", json::array(), "one piece at least");
  expect_corrupt(small_unigram(), "/pre_tokenizer/replacement", "ab", "a string of one character");
  expect_corrupt(small_unigram(), "/pre_tokenizer/prepend_scheme", "often", "`first` or `never`");
  expect_corrupt(small_unigram(), "/pre_tokenizer/add_prefix_space", false, "`never`");
  json without = small_unigram();
  without["model"]["unk_id"] = nullptr;
  EXPECT_EQ(tokenizer_of(without)->encode("ab"), (Ids{1, 4}));
  const Error error = error_of([&] { tokenizer_of(without)->encode("aé"); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("the character `é` is in no piece"), std::string::npos);
}

TEST(TokenizerReject, KindsNotKnownAreNamed) {
  const json kind = {{"type", "Other"}};
  expect_unsupported(small_bpe(), "/model/type", "WordPiece", "model of kind `WordPiece`");
  expect_unsupported(small_bpe(), "/normalizer", kind, "normaliser of kind `Other`");
  expect_unsupported(small_bpe(), "/pre_tokenizer", kind, "pre-tokeniser of kind `Other`");
  expect_unsupported(small_bpe(), "/post_processor", kind, "post-processor of kind `Other`");
  expect_unsupported(small_bpe(), "/decoder", kind, "decoder of kind `Other`");
  expect_unsupported(small_bpe(), "/model/dropout", 0.1, "dropout is random");
  expect_unsupported(small_bpe(), "/truncation", {{"max_length", 5}}, "truncation would change");
  expect_unsupported(small_bpe(), "/padding", {{"pad_id", 0}}, "padding would change");
}

TEST(TokenizerReject, SequencesInsideSequencesWithoutEnd) {
  const std::vector<std::pair<std::string, std::string>> lists = {
      {"normalizer", "normalizers"},
      {"pre_tokenizer", "pretokenizers"},
      {"post_processor", "processors"},
      {"decoder", "decoders"}};
  for (const auto& [part, list] : lists) {
    json nested = {{"type", "Sequence"}, {list, json::array()}};
    for (int i = 0; i < 20; ++i) nested = {{"type", "Sequence"}, {list, {nested}}};
    expect_unsupported(small_bpe(), "/" + part, nested, "too many sequences inside sequences");
  }
}

TEST(TokenizerReject, Templates) {
  const auto with = [](const char* single) {
    json file = small_bpe();
    file["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", json::parse(single)},
                              {"special_tokens", json::object()}};
    return file;
  };
  expect_refusal(with(R"([{"Sequence": {"id": "B"}}])"), ErrorKind::corrupt, "the sequence `A`");
  expect_refusal(with(R"([{"SpecialToken": {"id": "x"}}])"), ErrorKind::corrupt, "member `x`");
  json twice = small_bpe();
  const json part = with("[]")["post_processor"];
  twice["post_processor"] = {{"type", "Sequence"}, {"processors", {part, part}}};
  expect_refusal(twice, ErrorKind::data, "a second template");
  json many = with(R"([{"SpecialToken": {"id": "x"}}])");
  many["post_processor"]["special_tokens"] = {{"x", {{"ids", std::vector<int>(1001, 1)}}}};
  expect_refusal(many, ErrorKind::data, "a template of too many parts");
}

TEST(TokenizerReject, CharacterMaps) {
  const auto with = [](const std::string& base64) {
    json file = small_bpe();
    file["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", base64}};
    return file;
  };
  expect_refusal(with("abc"), ErrorKind::corrupt, "a character map in base64");
  expect_refusal(with("a*bc"), ErrorKind::corrupt, "a character map in base64");
  expect_refusal(with("AAB="), ErrorKind::corrupt, "a character map in base64");
  expect_refusal(with("AAA="), ErrorKind::corrupt, "of four bytes at least");
  expect_refusal(with("AAAAAA=="), ErrorKind::corrupt, "the size of its trie");
  expect_refusal(with("CAAAAAAAAAA="), ErrorKind::corrupt, "the size of its trie");
  expect_refusal(with("BAAAAAAAAAD/"), ErrorKind::corrupt, "replacements in UTF-8");
}

TEST(TokenizerReject, PatternsBeyondOneRepeatedCharacter) {
  const auto with = [](const json& pattern) {
    json file = small_bpe();
    file["normalizer"] = {{"type", "Replace"}, {"pattern", pattern}, {"content", "x"}};
    return file;
  };
  for (const char* regex : {"", "a|b", "(a)", "a*", "\\w+", "a{0,}", "a{3,2}", "a{x}", "[ab]", "\\",
                            "^a", "a{2", "ab"}) {
    expect_refusal(with({{"Regex", regex}}), ErrorKind::data, "more than one repeated character");
  }
  expect_refusal(with({{"String", ""}}), ErrorKind::corrupt, "one character or more");
  expect_refusal(with(json::object()), ErrorKind::corrupt, "member `Regex`");
}

TEST(TokenizerReject, TextsBlownUp) {
  json file = small_bpe();
  const json doubles = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::vector<json>(40, doubles)}};
  expect_refusal(file, ErrorKind::data, "the normaliser of `t.json` makes more than");
  file = small_bpe();
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", std::vector<json>(40, bytes)}};
  const Error error = error_of([&] { tokenizer_of(file)->encode("é"); });
  EXPECT_NE(std::string(error.what()).find("the pre-tokeniser of `t.json` makes more than"),
            std::string::npos)
      << error.what();
  file = small_bpe();
  file["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  file["added_tokens"] = {added_token(" ", {{"normalized", true}})};
  expect_refusal(file, ErrorKind::data, "an added token that is normalised to nothing");
}

}  // namespace
}  // namespace tandem
