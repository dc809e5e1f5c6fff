#include "config/levels.h"

#include "config/groups.h"
#include "config_test.h"

namespace tandem {

namespace {

class Levels : public ::testing::Test {
 protected:
  Levels() {
    folder_.write("configs/levels/enhanced.yaml",
                  "training:\n  schedule: cosine\n  warmup_steps: 500\n  seed: 7\n");
    folder_.write("configs/preset/p.yaml", "training:\n  warmup_steps: 50\n");
    configs_.emplace("TANDEM_CONFIG_DIR", folder_.path().string() + "/configs");
  }
  TestFolder folder_;
  std::optional<Variable> configs_;
};

using ShippedLevels = ShippedConfigs;

}  // namespace

TEST_F(Levels, LieRightAboveTheDefaults) {
  const Resolved resolved =
      resolve({.preset = "p",
               .overrides = {"optimization_level=enhanced", "training.seed=9"},
               .use_environment = false});
  EXPECT_EQ(resolved.config.training.schedule, "cosine");
  EXPECT_EQ(resolved.sources.at("training.schedule").where, "level enhanced");
  EXPECT_EQ(resolved.sources.at("training.schedule").layer, Source::Layer::level);
  EXPECT_EQ(resolved.config.training.warmup_steps, 50);
  EXPECT_EQ(resolved.sources.at("training.warmup_steps").where, "preset p");
  EXPECT_EQ(resolved.config.training.seed, 9);
  EXPECT_TRUE(resolved.notices.empty());
  EXPECT_NE(print_config(resolved).find("schedule: cosine  # level enhanced\n"), std::string::npos);
}

TEST_F(Levels, AreChosenAnywhereASettingIsGiven) {
  const std::string file = folder_.write("c.yaml", "training:\n  optimization_level: enhanced\n");
  EXPECT_EQ(resolve_file(file).config.training.seed, 7);
  EXPECT_EQ(resolve_file(file, {"optimization_level=basic"}).config.training.seed, 0);
  EXPECT_EQ(resolve({.flags = {{"--optimization-level", "enhanced"}}, .use_environment = false})
                .config.training.seed,
            7);
  const Variable variable("TANDEM_TRAINING_OPTIMIZATION_LEVEL", "enhanced");
  EXPECT_EQ(resolve({}).config.training.seed, 7);
}

TEST_F(Levels, AreNoPartyToAQuarrelOverNames) {
  folder_.write("configs/levels/experimental.yaml", "data:\n  prefetch_buffer_size: 9\n");
  const Resolved resolved =
      resolve_overrides({"optimization_level=experimental", "buffer_size=12"});
  EXPECT_EQ(resolved.config.data.buffer_size, 12);
}

TEST_F(Levels, WithoutAFileAreRefused) {
  EXPECT_EQ(sentence_of([] { resolve_overrides({"optimization_level=experimental"}); }),
            "there is no `levels` called `experimental` (training.optimization_level). There are: "
            "enhanced");
}

TEST_F(Levels, SayWhatTheySetAndWhatWasSetInstead) {
  EXPECT_EQ(describe_level(resolve_overrides({"optimization_level=enhanced", "warmup_steps=3"})),
            "optimization level `enhanced`: schedule=cosine, seed=7; instead of its own: "
            "warmup_steps=3 (warmup_steps=3)");
  EXPECT_EQ(describe_level(resolve_overrides({})), "optimization level `basic`: the defaults");
  EXPECT_TRUE(changed_settings(resolve_overrides({})).empty());
}

TEST_F(Levels, AndWhatElseIsNotTheDefaultAreListedWithTheirPlaces) {
  std::vector<std::string> lines;
  for (const ChangedSetting& changed :
       changed_settings(resolve_overrides({"optimization_level=enhanced", "warmup_steps=3"})))
    lines.push_back(changed.key + " " + changed.value + " " + changed.where);
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "training.schedule cosine level enhanced",
                       "training.warmup_steps 3 warmup_steps=3", "training.seed 7 level enhanced",
                       "training.optimization_level enhanced optimization_level=enhanced"}));
}

TEST_F(Levels, BasicNeedsNoFiles) {
  const Variable nowhere("TANDEM_CONFIG_DIR", folder_.path().string() + "/none");
  EXPECT_EQ(resolve_overrides({}).config.training.schedule, "constant");
}

TEST_F(ShippedLevels, AreThoseOfTheSetting) {
  EXPECT_EQ(group_choices(level_group),
            (std::vector<std::string>{"enhanced", "experimental", "plateau_breaker"}));
  for (const std::string& level : group_choices(level_group)) {
    const Resolved resolved = resolve_overrides({"optimization_level=" + level});
    EXPECT_TRUE(resolved.notices.empty()) << level;
    size_t changed = 0;
    for (const Entry& entry : level_entries(level)) {
      EXPECT_TRUE(entry.name.starts_with("training.")) << level << ": " << entry.name;
      EXPECT_EQ(resolved.sources.at(entry.name).where, "level " + level);
      ++changed;
    }
    EXPECT_GE(changed, 4u) << level;
  }
}

TEST_F(ShippedLevels, DoWhatTheirNamesSay) {
  const Config enhanced = resolve_overrides({"optimization_level=enhanced"}).config;
  EXPECT_EQ(enhanced.training.schedule, "cosine");
  EXPECT_GT(enhanced.training.warmup_steps, 0);
  EXPECT_GT(enhanced.training.ema_decay, 0);
  EXPECT_EQ(resolve_overrides({"optimization_level=experimental"}).config.training.precision,
            "bf16");
  const Config breaker = resolve_overrides({"optimization_level=plateau_breaker"}).config;
  EXPECT_EQ(breaker.training.schedule, "restarts");
  // Rates differ by stage and by what training starts from: a level leaves them alone.
  EXPECT_FALSE(breaker.training.learning_rate.has_value());
  EXPECT_LT(breaker.training.gradient_clip, Config{}.training.gradient_clip);
}

}  // namespace tandem
