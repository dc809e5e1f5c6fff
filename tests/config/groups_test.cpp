#include "config/groups.h"

#include "config/config_dir.h"
#include "config_test.h"

namespace tandem {

namespace {

class Groups : public ::testing::Test {
 protected:
  Groups() { configs_.emplace("TANDEM_CONFIG_DIR", folder_.path().string()); }
  std::string refusal(const std::string& word) {
    return sentence_of([&] { resolve_overrides({word}); });
  }
  TestFolder folder_;
  std::optional<Variable> configs_;
};

using Presets = Groups;
using ShippedGroups = ShippedConfigs;

}  // namespace

TEST_F(ShippedGroups, AllOfThemLoad) {
  for (const std::string& name : group_choices(preset_group)) {
    const Resolved resolved = resolve({.preset = name, .use_environment = false});
    EXPECT_TRUE(resolved.notices.empty()) << name;
    EXPECT_TRUE(
        std::any_of(resolved.sources.begin(), resolved.sources.end(),
                    [&](const auto& pair) { return pair.second.where == "preset " + name; }))
        << name;
  }
  size_t groups = 0;
  for (const std::string& section : sections()) {
    for (const std::string& name : group_choices(section)) {
      const std::string word = section + "=" + name;
      const Resolved resolved = resolve_overrides({word});
      EXPECT_TRUE(std::any_of(resolved.sources.begin(), resolved.sources.end(),
                              [&](const auto& pair) { return pair.second.where == word; }))
          << word;
      ++groups;
    }
  }
  EXPECT_EQ(groups, 18u);
}

TEST_F(ShippedGroups, PresetsOfTheCards) {
  struct Expected {
    const char* name;
    int64_t batch, workers, buffer, accumulation;
  };
  for (const Expected& e : {Expected{"rtx4090", 32, 24, 32, 1}, Expected{"rtx3090", 24, 16, 24, 1},
                            Expected{"rtx3080", 16, 16, 16, 1}, Expected{"rtx3060", 8, 8, 8, 2}}) {
    const Config config = resolve({.preset = e.name, .use_environment = false}).config;
    EXPECT_EQ(config.data.batch_size, e.batch) << e.name;
    EXPECT_EQ(config.data.num_workers, e.workers) << e.name;
    EXPECT_EQ(config.data.buffer_size, e.buffer) << e.name;
    EXPECT_EQ(config.training.gradient_accumulation_steps, e.accumulation) << e.name;
    EXPECT_TRUE(config.data.use_native_loading) << e.name;
  }
}

TEST_F(ShippedGroups, APresetsBufferNeverQuarrelsWithAFlag) {
  const Resolved resolved =
      resolve({.preset = "rtx4090", .flags = {{"--buffer-size", "50"}}, .use_environment = false});
  EXPECT_EQ(resolved.config.data.buffer_size, 50);
}

TEST_F(ShippedGroups, TheCommandLineOfTheTextToAudioScript) {
  const Config config =
      resolve_overrides({"+preset=tta/plgrid_musiccaps", "data=tta/base_vae_captions",
                         "model.model.max_new_tokens=512"})
          .config;
  EXPECT_EQ(config.data.text_column, "prediction");
  EXPECT_EQ(config.generation.max_new_tokens, 512);
  EXPECT_EQ(config.generation.batch_size, 16);
  EXPECT_EQ(resolve_overrides({"preset=tta/plgrid_musiccaps"}).config.generation.max_new_tokens,
            1024);
  EXPECT_EQ(resolve_overrides({"preset=tta/plgrid_musiccaps"}).config.data.id_column, "ytid");
}

TEST_F(ShippedGroups, Sampling) {
  expect_equal(resolve_overrides({"generation=default"}).config, Config{});
  const GenerationConfig best = resolve_overrides({"generation=best", "top_k=9"}).config.generation;
  EXPECT_EQ(best.temperature, 1.2);
  EXPECT_EQ(best.top_k, 9);
}

TEST_F(Groups, MergeIntoTheirSection) {
  folder_.write("data/a/b.yaml", "batch_size: 5\n");
  const Resolved resolved = resolve_overrides({"+data=a/b"});
  EXPECT_EQ(resolved.config.data.batch_size, 5);
  EXPECT_FALSE(resolved.config.generation.batch_size.has_value());
  EXPECT_EQ(resolved.sources.at("data.batch_size").where, "+data=a/b");
}

TEST_F(Groups, TheLastChoiceReplacesTheOneBefore) {
  folder_.write("data/a.yaml", "batch_size: 5\nnum_workers: 3\n");
  folder_.write("data/b.yaml", "batch_size: 6\n");
  const Config config = resolve_overrides({"data=a", "data=b"}).config;
  EXPECT_EQ(config.data.batch_size, 6);
  EXPECT_EQ(config.data.num_workers, 16);
}

TEST_F(Groups, UnknownChoicesListWhatThereIs) {
  folder_.write("data/tta/one.yaml", "");
  folder_.write("data/two.yaml", "");
  EXPECT_EQ(refusal("data=tta/onee"),
            "there is no `data` called `tta/onee` (data=tta/onee). Did you mean `tta/one`? There "
            "are: tta/one, two");
  EXPECT_EQ(refusal("paths=x"),
            "`paths` has no named sets of values (paths=x); expected `paths.name=value`");
}

TEST_F(Groups, ChoicesStayInTheirFolder) {
  folder_.write("data/a.yaml", "");
  folder_.write("other.yaml", "");
  for (const std::string choice : {"../other", "/etc/passwd", "a/../a", "./a", "a//a", ""}) {
    EXPECT_EQ(refusal("data=" + choice),
              "`" + choice + "` is no choice for `data` (data=" + choice +
                  "): expected a name such as `a/b`, without `..` and not a path from the root");
  }
}

TEST_F(Groups, ErrorsInsideNameTheirFileAndLine) {
  const std::string path = folder_.write("data/a.yaml", "batch_size: many\n");
  EXPECT_EQ(
      refusal("data=a"),
      "`data.batch_size` must be a whole number from 1 to 1000000, not `many` (" + path + ":1).");
  folder_.write("data/a.yaml", "multi_gpu: true\n");
  EXPECT_EQ(refusal("data=a"), "there is no setting `data.multi_gpu` (" + path +
                                   ":1). Did you mean `training.multi_gpu`?");
}

TEST_F(Presets, DefaultsComeFirst) {
  folder_.write("data/a.yaml", "batch_size: 5\nnum_workers: 3\n");
  folder_.write("data/b.yaml", "batch_size: 6\n");
  folder_.write("preset/p.yaml", "defaults:\n  - data: a\n  - _self_\ndata:\n  batch_size: 7\n");
  EXPECT_EQ(resolve_overrides({"preset=p"}).config.data.batch_size, 7);
  EXPECT_EQ(resolve_overrides({"preset=p"}).config.data.num_workers, 3);
  EXPECT_EQ(resolve_overrides({"preset=p", "data=b"}).config.data.num_workers, 16);
}

TEST_F(Presets, SeveralAreLaidOnTopOfEachOther) {
  folder_.write("preset/p.yaml", "data: {batch_size: 7, num_workers: 3}\n");
  folder_.write("preset/q.yaml", "data: {batch_size: 8}\n");
  const Config config =
      resolve({.preset = "p", .overrides = {"+preset=q"}, .use_environment = false}).config;
  EXPECT_EQ(config.data.batch_size, 8);
  EXPECT_EQ(config.data.num_workers, 3);
}

TEST_F(Presets, WrongDefaults) {
  const std::string path = folder_.write("preset/p.yaml", "defaults: {data: a}\n");
  const std::string shape = "`defaults` must be a list of `- group: choice` (" + path + ":1)";
  EXPECT_EQ(refusal("preset=p"), shape);
  folder_.write("preset/p.yaml", "defaults: [data]\n");
  EXPECT_EQ(refusal("preset=p"), shape);
  folder_.write("preset/p.yaml", "defaults: [{data: [a]}]\n");
  EXPECT_EQ(refusal("preset=p"), shape);
  folder_.write("preset/p.yaml", "defaults:\n  - dat: a\n");
  EXPECT_EQ(refusal("preset=p"),
            "`dat` is no section with named sets of values (" + path + ":2). Did you mean `data`?");
}

TEST_F(Presets, UnknownOne) {
  folder_.write("preset/rtx4090.yaml", "");
  EXPECT_EQ(sentence_of([] { resolve({.preset = "rtx409", .use_environment = false}); }),
            "there is no `preset` called `rtx409` (--preset). Did you mean `rtx4090`? There are: "
            "rtx4090");
}

TEST(PresetForGpu, KnowsTheCards) {
  EXPECT_EQ(preset_for_gpu("NVIDIA GeForce RTX 4090"), "rtx4090");
  EXPECT_EQ(preset_for_gpu("NVIDIA GeForce RTX 3090 Ti"), "rtx3090");
  EXPECT_EQ(preset_for_gpu("NVIDIA GeForce RTX 3080"), "rtx3080");
  EXPECT_EQ(preset_for_gpu("NVIDIA GeForce RTX 3060"), "rtx3060");
  EXPECT_EQ(preset_for_gpu("NVIDIA A100-SXM4-40GB"), "a100");
  EXPECT_EQ(preset_for_gpu("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(preset_for_gpu("NVIDIA H200"), "h200");
}

TEST(PresetForGpu, DoesNotMistakeOthersForThem) {
  for (const char* name : {"NVIDIA GH200 480GB", "NVIDIA GeForce RTX 4090 Laptop GPU", "Tesla T4",
                           "NVIDIA A100-SXM4-40GB MIG 1g.5gb", ""})
    EXPECT_EQ(preset_for_gpu(name), "") << name;
}

TEST_F(ShippedGroups, PresetAutoFollowsTheCard) {
  const ResolveRequest request{
      .preset = "auto", .use_environment = false, .gpu_name = "NVIDIA GeForce RTX 4090"};
  const Resolved resolved = resolve(request);
  EXPECT_EQ(resolved.config.data.batch_size, 32);
  EXPECT_EQ(resolved.sources.at("data.batch_size").where, "preset rtx4090");
}

TEST_F(ShippedGroups, PresetAutoSaysWhenNoneFits) {
  const auto outcome = [](const char* gpu) {
    const Resolved resolved =
        resolve({.overrides = {"preset=auto"}, .use_environment = false, .gpu_name = gpu});
    expect_equal(resolved.config, Config{});
    return resolved.notices;
  };
  EXPECT_EQ(outcome("Tesla T4"),
            std::vector<std::string>{
                "preset `auto` changes nothing: none is meant for the GPU `Tesla T4`"});
  EXPECT_EQ(outcome(""), std::vector<std::string>{
                             "preset `auto` changes nothing: there is no GPU to choose one for"});
}

TEST(ConfigDir, FollowsTheVariable) {
  TestFolder folder;
  const Variable variable("TANDEM_CONFIG_DIR", folder.path().string());
  EXPECT_EQ(config_dir(), folder.path().string());
}

TEST(ConfigDir, RefusesAVariableThatNamesNoFolder) {
  const Variable variable("TANDEM_CONFIG_DIR", "/nowhere/at/all");
  EXPECT_EQ(sentence_of([] { config_dir(); }),
            "`TANDEM_CONFIG_DIR` is `/nowhere/at/all`, which is not a folder");
}

TEST(ConfigDir, IsNotNeededWithoutPresetsAndGroups) {
  const Variable variable("TANDEM_CONFIG_DIR", "/nowhere/at/all");
  EXPECT_EQ(resolve_overrides({"epochs=3"}).config.training.epochs, 3);
}

}  // namespace tandem
