// Who wins, who contradicts whom, and what the user is told.
#include <algorithm>

#include "config_test.h"

namespace tandem {

namespace {

class Layers : public ::testing::Test {
 protected:
  Layers() {
    folder_.write("configs/preset/p.yaml", "data:\n  batch_size: 2\n");
    folder_.write("configs/data/g.yaml", "batch_size: 4\n");
    file_ = folder_.write("c.yaml", "data:\n  batch_size: 3\n");
    configs_.emplace("TANDEM_CONFIG_DIR", folder_.path().string() + "/configs");
  }

  void expect_winner(const ResolveRequest& request, int64_t value, Source::Layer layer,
                     const std::string& where) {
    const Resolved resolved = resolve(request);
    EXPECT_EQ(resolved.config.data.batch_size, value);
    EXPECT_EQ(resolved.sources.at("data.batch_size").layer, layer);
    EXPECT_EQ(resolved.sources.at("data.batch_size").where, where);
  }

  TestFolder folder_;
  std::optional<Variable> configs_;
  std::string file_;
};

bool has(const std::vector<std::string>& lines, const std::string& line) {
  return std::count(lines.begin(), lines.end(), line) == 1;
}

}  // namespace

TEST_F(Layers, EachWinsOverTheOnesBefore) {
  using Layer = Source::Layer;
  ResolveRequest request;
  expect_winner(request, 16, Layer::standard, "default");
  request.preset = "p";
  expect_winner(request, 2, Layer::preset, "preset p");
  request.config_file = file_;
  expect_winner(request, 3, Layer::file, file_ + ":2");
  request.overrides = {"data=g"};
  expect_winner(request, 4, Layer::group, "data=g");
  const Variable variable("TANDEM_DATA_BATCH_SIZE", "5");
  expect_winner(request, 5, Layer::environment, "TANDEM_DATA_BATCH_SIZE");
  request.flags = {{"--batch-size", "6"}};
  expect_winner(request, 6, Layer::flag, "--batch-size");
  request.overrides.push_back("batch_size=7");
  expect_winner(request, 7, Layer::override_, "batch_size=7");
}

TEST_F(Layers, SetOnlyTheKeysTheyName) {
  const Resolved resolved =
      resolve({.preset = "p", .overrides = {"epochs=3"}, .use_environment = false});
  EXPECT_EQ(resolved.config.data.batch_size, 2);
  EXPECT_EQ(resolved.config.training.epochs, 3);
  EXPECT_EQ(resolved.sources.at("training.seed").where, "default");
  EXPECT_EQ(resolved.sources.size(), settings().size());
}

TEST_F(Layers, TheEnvironmentCanBeLeftOut) {
  const Variable variable("TANDEM_DATA_BATCH_SIZE", "5");
  EXPECT_EQ(resolve({.use_environment = false}).config.data.batch_size, 16);
  EXPECT_EQ(Config::from_overrides({}).data.batch_size, 16);
}

TEST(Flags, SetTheirSetting) {
  const Config config = resolve({.flags = {{"--multi-gpu", "true"}, {"--train-data", "a b"}},
                                 .use_environment = false})
                            .config;
  EXPECT_TRUE(config.training.multi_gpu);
  EXPECT_EQ(config.data.train_data, "a b");
}

TEST(Flags, ErrorsNameTheFlag) {
  const auto refusal = [](const char* flag, const char* text, ErrorKind kind) {
    return sentence_of([&] { resolve({.flags = {{flag, text}}, .use_environment = false}); }, kind);
  };
  EXPECT_EQ(refusal("--grad-accum", "many", ErrorKind::config),
            "`training.gradient_accumulation_steps` must be a whole number from 1 to 100000, not "
            "`many` (--grad-accum).");
  EXPECT_EQ(refusal("--nothing", "1", ErrorKind::usage), "there is no flag `--nothing`");
}

TEST(Environment, AliasesHaveVariablesToo) {
  const Variable variable("TANDEM_DATA_PREFETCH_BUFFER_SIZE", "9");
  EXPECT_EQ(resolve({}).config.data.buffer_size, 9);
}

TEST(Environment, AnEmptyVariableIsUnset) {
  const Variable variable("TANDEM_DATA_BATCH_SIZE", "");
  EXPECT_EQ(resolve({}).config.data.batch_size, 16);
}

TEST(Environment, ErrorsNameTheVariable) {
  const Variable variable("TANDEM_TRAINING_MULTI_GPU", "maybe");
  EXPECT_EQ(sentence_of([] { resolve({}); }),
            "`training.multi_gpu` must be true or false, not `maybe` (TANDEM_TRAINING_MULTI_GPU).");
}

TEST(Environment, UnknownVariablesOfASectionBringANotice) {
  const Variable misspelt("TANDEM_TRAINING_MULTI_GP", "1");
  const Variable foreign("TANDEM_SIMULATE_GPUS", "2");
  const std::vector<std::string> notices = resolve({}).notices;
  EXPECT_TRUE(has(notices,
                  "the variable `TANDEM_TRAINING_MULTI_GP` names no setting and was not read. Did "
                  "you mean `TANDEM_TRAINING_MULTI_GPU`?"));
  for (const std::string& line : notices) EXPECT_EQ(line.find("SIMULATE"), std::string::npos);
}

TEST(TwoNames, DifferentValuesAreRefusedWithBothPlaces) {
  EXPECT_EQ(sentence_of([] {
              resolve({.flags = {{"--buffer-size", "50"}},
                       .overrides = {"prefetch_buffer_size=16"},
                       .use_environment = false});
            }),
            "`data.buffer_size` is 50 (--buffer-size) and `data.prefetch_buffer_size` is 16 "
            "(prefetch_buffer_size=16), but both are names of `data.buffer_size`");
  TestFolder folder;
  const std::string path =
      folder.write("c.yaml", "data:\n  pipeline_buffer_size: 8\n  prefetch_buffer_size: 16\n");
  EXPECT_EQ(sentence_of([&] { resolve_file(path); }),
            "`data.pipeline_buffer_size` is 8 (" + path +
                ":2) and `data.prefetch_buffer_size` is 16 (" + path +
                ":3), but both are names of `data.buffer_size`");
}

TEST(TwoNames, OldNamesCount) {
  EXPECT_EQ(
      sentence_of([] {
        resolve_overrides({"use_native_loading=true", "use_tf_native_loading=false"});
      }),
      "`data.use_native_loading` is true (use_native_loading=true) and "
      "`data.use_tf_native_loading` is false (use_tf_native_loading=false), but both are names "
      "of `data.use_native_loading`");
}

TEST(TwoNames, EqualValuesAreFine) {
  const Resolved resolved = resolve({.flags = {{"--buffer-size", "16"}},
                                     .overrides = {"prefetch_buffer_size=1.6e1"},
                                     .use_environment = false});
  EXPECT_EQ(resolved.config.data.buffer_size, 16);
}

TEST(TwoNames, TheLatestUnderEachNameCounts) {
  TestFolder folder;
  const std::string path = folder.write("c.yaml", "prefetch_buffer_size: 8\n");
  EXPECT_EQ(
      resolve_file(path, {"buffer_size=16", "prefetch_buffer_size=16"}).config.data.buffer_size,
      16);
}

TEST(TwoNames, OneNameInTwoLayersIsPrecedence) {
  TestFolder folder;
  const std::string path = folder.write("c.yaml", "data:\n  buffer_size: 8\n");
  EXPECT_EQ(resolve({.config_file = path,
                     .flags = {{"--buffer-size", "50"}},
                     .overrides = {"buffer_size=60"},
                     .use_environment = false})
                .config.data.buffer_size,
            60);
}

TEST(TwoNames, ADeletedValueIsForgotten) {
  EXPECT_EQ(resolve_overrides({"buffer_size=8", "~buffer_size", "prefetch_buffer_size=16"})
                .config.data.buffer_size,
            16);
}

TEST(Notices, OldNamesBringOneLine) {
  const std::vector<std::string> notices =
      resolve_overrides({"use_tf_native_loading=false", "data.use_tf_native_loading=false",
                         "enable_xla_compilation=false"})
          .notices;
  EXPECT_TRUE(has(
      notices, "`use_tf_native_loading` is an old name of `data.use_native_loading`; both work"));
  EXPECT_TRUE(
      has(notices,
          "`enable_xla_compilation` is an old name of `training.enable_kernel_fusion`; both work"));
}

TEST(Notices, OfficialNamesBringNone) {
  EXPECT_TRUE(resolve_overrides({"pipeline_buffer_size=9"}).notices.empty());
  EXPECT_TRUE(resolve_overrides({"prefetch_buffer_size=9", "multi_gpu=true"}).notices.empty());
}

TEST(Notices, EverySettingIsReadBySomeCommand) {
  for (const Setting& setting : settings()) EXPECT_NE(setting.readers, 0u) << setting.key;
}

TEST(Notices, AFlatNameThatReachesAReaderBringsNone) {
  EXPECT_TRUE(resolve_overrides({"batch_size=4"}).notices.empty());
}

}  // namespace tandem
