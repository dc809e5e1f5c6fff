#include "config/overrides.h"

#include "config_test.h"

namespace tandem {

namespace {
std::string refusal(const std::string& word) {
  return sentence_of([&] { resolve_overrides({word}); });
}
}  // namespace

TEST(Overrides, FlatAndDottedNamesAreEqual) {
  EXPECT_TRUE(resolve_overrides({"multi_gpu=true"}).config.training.multi_gpu);
  EXPECT_TRUE(resolve_overrides({"training.multi_gpu=yes"}).config.training.multi_gpu);
}

TEST(Overrides, ThreeWaysToSetMultiGpuAreEqual) {
  TestFolder folder;
  const Config aggregate{.training = {.multi_gpu = true}};
  expect_equal(aggregate, Config::from_overrides({"multi_gpu=true"}));
  expect_equal(aggregate,
               Config::from_yaml(folder.write("c.yaml", "training:\n  multi_gpu: true\n")));
  expect_equal(aggregate, Config::from_yaml(folder.write("flat.yaml", "multi_gpu: true\n")));
}

TEST(Overrides, FlatNameThatLivesInTwoSectionsSetsBoth) {
  const Config config = resolve_overrides({"batch_size=32", "seed=7"}).config;
  EXPECT_EQ(config.data.batch_size, 32);
  EXPECT_EQ(config.generation.batch_size, 32);
  EXPECT_EQ(config.training.seed, 7);
  EXPECT_EQ(config.generation.seed, 7);
}

TEST(Overrides, DottedNameSetsOneSectionOnly) {
  const Config config = resolve_overrides({"generation.seed=7"}).config;
  EXPECT_EQ(config.training.seed, 0);
  EXPECT_EQ(config.generation.seed, 7);
}

TEST(Overrides, BatchSizeAutoSpeaksToGenerationAlone) {
  const Config config = resolve_overrides({"batch_size=8", "batch_size=auto"}).config;
  EXPECT_EQ(config.data.batch_size, 8);
  EXPECT_FALSE(config.generation.batch_size.has_value());
  EXPECT_EQ(refusal("data.batch_size=auto"),
            "`data.batch_size` must be a whole number from 1 to 1000000, not `auto` "
            "(data.batch_size=auto).");
}

TEST(Overrides, LaterOnesWin) {
  EXPECT_EQ(resolve_overrides({"epochs=3", "epochs=5"}).config.training.epochs, 5);
}

TEST(Overrides, PlusesChangeNothing) {
  EXPECT_EQ(resolve_overrides({"+epochs=3"}).config.training.epochs, 3);
  EXPECT_EQ(resolve_overrides({"++training.epochs=4"}).config.training.epochs, 4);
}

TEST(Overrides, SpacesAroundTheEqualsSignDoNotCount) {
  EXPECT_EQ(resolve_overrides({"epochs = 3"}).config.training.epochs, 3);
}

TEST(Overrides, TheValueMayHoldEqualsSigns) {
  EXPECT_EQ(resolve_overrides({"run_id=a=b"}).config.paths.run_id, "a=b");
}

TEST(Overrides, UnknownNamesListTheNearest) {
  EXPECT_EQ(refusal("multi_gp=true"),
            "there is no setting `multi_gp` (multi_gp=true). Did you mean `multi_gpu`?");
  EXPECT_EQ(refusal("training.epoch=3"),
            "there is no setting `training.epoch` (training.epoch=3). Did you mean "
            "`training.epochs`?");
  EXPECT_EQ(refusal("zzzzzz=1"), "there is no setting `zzzzzz` (zzzzzz=1).");
}

TEST(Overrides, RightNameInTheWrongSectionIsSuggested) {
  EXPECT_EQ(refusal("data.multi_gpu=true"),
            "there is no setting `data.multi_gpu` (data.multi_gpu=true). Did you mean "
            "`training.multi_gpu`?");
  EXPECT_EQ(refusal("model.seed=1"),
            "there is no setting `model.seed` (model.seed=1). Did you mean `training.seed` or "
            "`generation.seed`?");
}

TEST(Overrides, OddBytesStayInsideOneSentence) {
  EXPECT_EQ(refusal("a\nb\xff=1"), "there is no setting `a\\x0ab\\xff` (a\\x0ab\\xff=1).");
}

TEST(Overrides, OtherFormsAreRefused) {
  EXPECT_EQ(refusal("multi_gpu"), "`multi_gpu` is no setting: expected `key=value`");
  EXPECT_EQ(refusal(""), "`` is no setting: expected `key=value`");
  EXPECT_EQ(refusal("=3"), "`=3` is no setting: expected `key=value`");
  EXPECT_EQ(refusal("+=3"), "`+=3` is no setting: expected `key=value`");
  EXPECT_EQ(refusal("~epochs=3"), "`~epochs=3` is no setting: expected `~key`");
  EXPECT_EQ(refusal("~"), "`~` is no setting: expected `~key`");
  EXPECT_EQ(refusal("model.model=3"),
            "`model.model` is a section; expected `model.model.name` (model.model=3)");
}

TEST(Overrides, TildeGoesBackToTheDefault) {
  const Resolved resolved = resolve_overrides({"seed=5", "epochs=3", "~seed"});
  EXPECT_EQ(resolved.config.training.seed, 0);
  EXPECT_EQ(resolved.config.generation.seed, 0);
  EXPECT_EQ(resolved.config.training.epochs, 3);
  EXPECT_EQ(resolved.sources.at("training.seed").where, "default (~seed)");
  EXPECT_EQ(resolve_overrides({"~epochs", "epochs=4"}).config.training.epochs, 4);
}

TEST(Overrides, TildeOfTheUnknownIsRefused) {
  EXPECT_EQ(refusal("~epoch"), "there is no setting `epoch` (~epoch). Did you mean `epochs`?");
  EXPECT_EQ(refusal("~data"), "`data` is a section; expected `data.name` (~data)");
}

TEST(Aliases, ReachTheirSetting) {
  const Config config =
      resolve_overrides({"data.dataloader_num_workers=4", "gradient_accumulation=2",
                         "data.pipeline_start_delay=1.5", "prefetch_buffer_size=9",
                         "model.model.max_new_tokens=512", "model.model.use_cache=false",
                         "model.model.temperature=0.5", "model.model.top_k=3",
                         "model.model.top_p=0.5", "model.model.guidance_scale=2",
                         "model.model.seed=11"})
          .config;
  EXPECT_EQ(config.data.num_workers, 4);
  EXPECT_EQ(config.training.gradient_accumulation_steps, 2);
  EXPECT_EQ(config.data.model_start_delay, 1.5);
  EXPECT_EQ(config.data.buffer_size, 9);
  EXPECT_EQ(config.generation.max_new_tokens, 512);
  EXPECT_FALSE(config.generation.use_cache);
  EXPECT_EQ(config.generation.temperature, 0.5);
  EXPECT_EQ(config.generation.top_k, 3);
  EXPECT_EQ(config.generation.top_p, 0.5);
  EXPECT_EQ(config.generation.guidance_scale, 2.0);
  EXPECT_EQ(config.generation.seed, 11);
  EXPECT_EQ(config.training.seed, 0);
}

}  // namespace tandem
