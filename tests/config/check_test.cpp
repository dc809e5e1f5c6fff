#include "config/check.h"

#include "config_test.h"

namespace tandem {

namespace {

// The sentence up to the place, which is the override itself.
std::string refusal(const std::string& word) {
  const std::string sentence = sentence_of([&] { resolve_overrides({word}); });
  return sentence.substr(0, sentence.find(" (" + word));
}

Config with(const std::string& word) { return resolve_overrides({word}).config; }

}  // namespace

TEST(Types, Booleans) {
  EXPECT_EQ(refusal("multi_gpu=maybe"), "`training.multi_gpu` must be true or false, not `maybe`");
  EXPECT_EQ(refusal("multi_gpu=\"true\""),
            "`training.multi_gpu` must be true or false, not `\"true\"`");
  EXPECT_EQ(refusal("multi_gpu=1"), "`training.multi_gpu` must be true or false, not `1`");
  EXPECT_EQ(refusal("multi_gpu="), "`training.multi_gpu` must be true or false, not nothing");
}

TEST(Types, WholeNumbersMayBeWrittenAsNumbers) {
  EXPECT_EQ(with("epochs=1e3").training.epochs, 1000);
  EXPECT_EQ(with("epochs=16.0").training.epochs, 16);
  EXPECT_EQ(refusal("epochs=16.5"),
            "`training.epochs` must be a whole number from 1 to 1000000000, not `16.5`");
  EXPECT_EQ(refusal("epochs=ten"),
            "`training.epochs` must be a whole number from 1 to 1000000000, not `ten`");
}

TEST(Types, WholeNumbersThatDoNotFitAreRefused) {
  EXPECT_EQ(with("training.seed=9223372036854775807").training.seed, 9223372036854775807);
  EXPECT_EQ(refusal("training.seed=9223372036854775808"),
            "`training.seed` must be a whole number of at least 0, not `9.223372036854776e+18`");
  EXPECT_EQ(refusal("training.seed=.nan"),
            "`training.seed` must be a whole number of at least 0, not `.nan`");
  EXPECT_EQ(refusal("training.seed=.inf"),
            "`training.seed` must be a whole number of at least 0, not `.inf`");
}

TEST(Types, Numbers) {
  EXPECT_EQ(with("learning_rate=1e-4").training.learning_rate, 1e-4);
  EXPECT_EQ(with("learning_rate=1").training.learning_rate, 1.0);
  EXPECT_EQ(refusal("learning_rate=0"),
            "`training.learning_rate` must be a number above 0, at most 10, or null, not `0`");
  EXPECT_EQ(refusal("learning_rate=.nan"),
            "`training.learning_rate` must be a number above 0, at most 10, or null, not `.nan`");
  EXPECT_EQ(refusal("learning_rate=fast"),
            "`training.learning_rate` must be a number above 0, at most 10, or null, not `fast`");
  EXPECT_EQ(refusal("top_p=1.01"), "`generation.top_p` must be a number from 0 to 1, not `1.01`");
}

TEST(Types, TextKeepsTheCharactersOfNumbers) {
  EXPECT_EQ(with("visible_gpus=0").training.visible_gpus, "0");
  EXPECT_EQ(with("run_id=007").paths.run_id, "007");
  EXPECT_EQ(with("run_id=1e3").paths.run_id, "1e3");
  EXPECT_EQ(with("run_id=on").paths.run_id, "on");
  EXPECT_EQ(with("train_data='[mix] data'").data.train_data, "[mix] data");
  EXPECT_EQ(with("train_data=[mix] data").data.train_data, "[mix] data");
}

TEST(Types, TextTakesListsJoinedByCommas) {
  EXPECT_EQ(with("visible_gpus=[0, 1]").training.visible_gpus, "0,1");
  EXPECT_EQ(refusal("visible_gpus=[]"), "`training.visible_gpus` must be text, or null, not `[]`");
  EXPECT_EQ(refusal("visible_gpus=[[0]]"),
            "`training.visible_gpus` must be text, or null, not `[[0]]`");
  EXPECT_EQ(refusal("epochs=[1]"),
            "`training.epochs` must be a whole number from 1 to 1000000000, not `[1]`");
}

TEST(Types, TextIsUtf8) {
  EXPECT_EQ(with("train_data=größe/音楽").data.train_data, "größe/音楽");
  EXPECT_EQ(sentence_of([] { resolve_overrides({"train_data=a\xff"}); }),
            "`data.train_data` must be UTF-8 text without NUL, not `a\\xff` (train_data=a\\xff)");
}

TEST(Types, NullOnlyWhereItMeansSomething) {
  EXPECT_FALSE(with("visible_gpus=null").training.visible_gpus.has_value());
  EXPECT_FALSE(with("max_steps=~").training.max_steps.has_value());
  EXPECT_FALSE(with("generation.batch_size=auto").generation.batch_size.has_value());
  EXPECT_EQ(refusal("epochs=null"),
            "`training.epochs` must be a whole number from 1 to 1000000000, not `null`");
  EXPECT_EQ(refusal("max_steps=auto"),
            "`training.max_steps` must be a whole number from 1 to 1000000000000, or null, not "
            "`auto`");
  EXPECT_EQ(refusal("generation.batch_size=0"),
            "`generation.batch_size` must be a whole number from 1 to 1000000, or null or `auto`, "
            "not `0`");
}

TEST(Types, Choices) {
  EXPECT_EQ(with("precision=bf16").training.precision, "bf16");
  EXPECT_EQ(sentence_of([] { resolve_overrides({"precision=bf17"}); }),
            "`training.precision` must be one of `fp32`, `tf32`, `bf16`, `fp16`, not `bf17` "
            "(precision=bf17). Did you mean `bf16`?");
  EXPECT_EQ(refusal("stage=vocoder"),
            "`training.stage` must be one of `bytes`, `gpt`, `dvae`, `decoder`, `all`, not "
            "`vocoder`");
}

TEST(Types, LongValuesAreCutInTheSentence) {
  const std::string sentence =
      sentence_of([] { resolve_overrides({"epochs=" + std::string(5000, 'x')}); });
  EXPECT_LT(sentence.size(), 400u);
  EXPECT_NE(sentence.find("…"), std::string::npos);
}

TEST(Types, RangesHoldAtTheirEnds) {
  for (const Setting& setting : settings()) {
    if (!setting.range) continue;
    const Range& range = *setting.range;
    const auto accepts = [&](double number) {
      try {
        checked_value(setting, Value(number), "test");
        return true;
      } catch (const Error&) {
        return false;
      }
    };
    EXPECT_EQ(accepts(range.min), !range.above_min) << setting.key;
    EXPECT_FALSE(accepts(range.min - 1)) << setting.key;
    EXPECT_EQ(accepts(range.max), range.max < 1e300) << setting.key;
    EXPECT_FALSE(accepts(range.max + 1)) << setting.key;
  }
}

}  // namespace tandem
