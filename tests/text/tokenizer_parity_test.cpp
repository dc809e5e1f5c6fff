// The ids and texts the Hugging Face `tokenizers` package gave for the same files.
#include <gtest/gtest.h>

#include "text/tokenizer_files.h"

namespace tandem {
namespace {

void expect_the_same(const std::string& name) {
  const nlohmann::json expected = expected_ids();
  const auto tokenizer = load_tokenizer(tokenizer_fixture(name + ".json"));
  const auto& texts = expected.at("texts");
  ASSERT_GT(texts.size(), 300U);
  for (size_t i = 0; i < texts.size(); ++i) {
    const Ids ids = expected.at(name)[i].get<Ids>();
    EXPECT_EQ(tokenizer->encode(texts[i].get<std::string>()), ids) << texts[i].dump(-1, ' ', true);
    EXPECT_EQ(tokenizer->decode(ids), expected.at(name + "_decoded")[i].get<std::string>())
        << texts[i].dump(-1, ' ', true);
  }
}

TEST(TokenizerParity, BpeGivesTheReferencesIds) { expect_the_same("like_xtts"); }
TEST(TokenizerParity, UnigramGivesTheReferencesIds) { expect_the_same("like_t5"); }

TEST(TokenizerParity, TheLastOfTwoEqualMergesCounts) {
  nlohmann::json file = small_bpe();
  file["model"]["vocab"]["bc"] = 7;
  file["model"]["merges"] = {"a b", "b c"};
  EXPECT_EQ(tokenizer_of(file)->encode("abc"), (Ids{6, 3}));
  file["model"]["merges"] = {"a b", "b c", "a b"};
  EXPECT_EQ(tokenizer_of(file)->encode("abc"), (Ids{1, 7}));
}

}  // namespace
}  // namespace tandem
