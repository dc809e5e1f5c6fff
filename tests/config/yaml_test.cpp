#include "config/yaml_source.h"

#include "config_test.h"

namespace tandem {

namespace {

class YamlFile : public ::testing::Test {
 protected:
  Config load(const std::string& text) { return resolve_file(write(text)).config; }
  std::string write(const std::string& text) { return path_ = folder_.write("c.yaml", text); }

  // The sentence, with the path cut down to the file's name.
  std::string refusal(const std::string& text) {
    write(text);
    return without_folder(sentence_of([&] { resolve_file(path_); }));
  }
  std::string without_folder(std::string sentence) {
    const std::string folder = folder_.path().string() + "/";
    for (size_t at; (at = sentence.find(folder)) != std::string::npos;)
      sentence.erase(at, folder.size());
    return sentence;
  }

  TestFolder folder_;
  std::string path_;
};

}  // namespace

TEST_F(YamlFile, SectionsFlatAndDottedNames) {
  const Config config = load(
      "training:\n  multi_gpu: true\n  learning_rate: 1e-4\n"
      "epochs: 7\n"
      "data.batch_size: 4\n"
      "model:\n  model:\n    max_new_tokens: 512\n");
  EXPECT_TRUE(config.training.multi_gpu);
  EXPECT_EQ(config.training.learning_rate, 1e-4);
  EXPECT_EQ(config.training.epochs, 7);
  EXPECT_EQ(config.data.batch_size, 4);
  EXPECT_EQ(config.generation.max_new_tokens, 512);
}

TEST_F(YamlFile, FlatNameInTwoSectionsSetsBoth) {
  const Config config = load("seed: 3\n");
  EXPECT_EQ(config.training.seed, 3);
  EXPECT_EQ(config.generation.seed, 3);
}

TEST_F(YamlFile, TextFromNumbersListsAndBlocks) {
  EXPECT_EQ(load("visible_gpus: 0").training.visible_gpus, "0");
  EXPECT_EQ(load("visible_gpus: [0, 1]").training.visible_gpus, "0,1");
  EXPECT_EQ(load("visible_gpus:\n  - 2\n  - 3\n").training.visible_gpus, "2,3");
  EXPECT_EQ(load("visible_gpus: \"0,1\"").training.visible_gpus, "0,1");
  EXPECT_EQ(load("visible_gpus: !!str 0").training.visible_gpus, "0");
  EXPECT_EQ(load("run_id: 2024-01-01").paths.run_id, "2024-01-01");
}

TEST_F(YamlFile, NothingInItMeansDefaults) {
  for (const char* text :
       {"", "\n", "# only a comment\n", "---\n", "training:\n", "training: {}\n", "~"})
    expect_equal(load(text), Config{});
}

TEST_F(YamlFile, NullIsForNullableSettingsOnly) {
  EXPECT_FALSE(load("max_steps: null").training.max_steps.has_value());
  EXPECT_FALSE(load("max_steps:").training.max_steps.has_value());
  EXPECT_EQ(
      refusal("# top\nepochs:\n"),
      "`training.epochs` must be a whole number from 1 to 1000000000, not `null` (c.yaml:2).");
}

TEST_F(YamlFile, AnchorsWork) {
  EXPECT_EQ(load("training: {save_step: &n 5, val_step: *n}").training.val_step, 5);
}

TEST_F(YamlFile, ErrorsNameTheLine) {
  EXPECT_EQ(refusal("training:\n  multi_gpu: 3\n"),
            "`training.multi_gpu` must be true or false, not `3` (c.yaml:2).");
  EXPECT_EQ(refusal("data:\n  # why\n  batch_size: \"16\"\n"),
            "`data.batch_size` must be a whole number from 1 to 1000000, not `\"16\"` (c.yaml:3).");
}

TEST_F(YamlFile, UnknownNames) {
  EXPECT_EQ(refusal("training:\n  multi_gpus: true\n"),
            "there is no setting `training.multi_gpus` (c.yaml:2). Did you mean "
            "`training.multi_gpu`?");
  EXPECT_EQ(refusal("trainig:\n  multi_gpu: true\n"),
            "there is no setting `trainig` (c.yaml:1). Did you mean `training`?");
  EXPECT_EQ(refusal("multi_gp: true\n"),
            "there is no setting `multi_gp` (c.yaml:1). Did you mean `multi_gpu`?");
  EXPECT_EQ(refusal("model: {model: {model: {top_k: 3}}}"),
            "there is no setting `model.model.model` (c.yaml:1). Did you mean "
            "`model.model.top_k` or `model.model.top_p` or `model.model.seed`?");
}

TEST_F(YamlFile, DuplicateKeys) {
  EXPECT_EQ(refusal("data:\n  batch_size: 4\n  batch_size: 4\n"),
            "`batch_size` is given twice: c.yaml:2 and c.yaml:3");
  EXPECT_EQ(refusal("data: {}\nepochs: 3\ndata: {}\n"),
            "`data` is given twice: c.yaml:1 and c.yaml:3");
}

TEST_F(YamlFile, OneSettingInTwoPlacesOfTheFile) {
  EXPECT_EQ(refusal("seed: 1\ntraining:\n  seed: 2\n"),
            "`training.seed` is given twice: 1 (c.yaml:1) and 2 (c.yaml:3)");
  EXPECT_EQ(load("seed: 1\ntraining:\n  seed: 1\n").training.seed, 1);
}

TEST_F(YamlFile, WrongShapes) {
  EXPECT_EQ(refusal("- a\n- b\n"), "`c.yaml` holds a list; expected settings as `name: value`");
  EXPECT_EQ(refusal("hello"), "`c.yaml` holds a single value; expected settings as `name: value`");
  EXPECT_EQ(refusal("training: 5\n"),
            "`training` is a section; expected settings as `name: value` below it (c.yaml:1)");
  EXPECT_EQ(refusal("training: [multi_gpu]\n"),
            "`training` is a section; expected settings as `name: value` below it (c.yaml:1)");
  EXPECT_EQ(refusal("epochs: {a: 1}\n"),
            "`epochs` must be a single value or a plain list (c.yaml:1)");
  EXPECT_EQ(refusal("epochs: {}\n"), "`epochs` must be a single value or a plain list (c.yaml:1)");
  EXPECT_EQ(refusal("visible_gpus: [[0], 1]\n"),
            "`visible_gpus` must be a single value or a plain list (c.yaml:1)");
  EXPECT_EQ(refusal("? [a, b]\n: 3\n"), "a key that is not a plain name (c.yaml:1)");
  EXPECT_EQ(refusal("epochs: 3\n---\nepochs: 4\n"),
            "`c.yaml` holds 2 YAML documents; expected one");
  EXPECT_EQ(refusal("training:\n  <<: {epochs: 3}\n"),
            "merge keys (`<<`) are not read (c.yaml:2); write the values");
}

TEST_F(YamlFile, BrokenYaml) {
  EXPECT_EQ(refusal("training: {multi_gpu: true\n").substr(0, 28), "`c.yaml:1` is not valid YAML");
  EXPECT_EQ(refusal("a: b: c\n").substr(0, 28), "`c.yaml:1` is not valid YAML");
  EXPECT_EQ(refusal("epochs: *nowhere\n").substr(0, 28), "`c.yaml:1` is not valid YAML");
  EXPECT_EQ(refusal("training:\n\tepochs: 3\n").substr(0, 28), "`c.yaml:2` is not valid YAML");
}

TEST_F(YamlFile, AQuoteThatNeverClosesDoesNotSwallowTheRest) {
  for (const char* text :
       {"run_id: \"open\n", "run_id: \"open\nepochs: 3\n", "run_id: 'open\n", "'a"})
    EXPECT_NE(refusal(text).find("is not valid YAML: a quote is not closed"), std::string::npos)
        << refusal(text);
}

TEST_F(YamlFile, BinaryRubbish) {
  const std::string expected = "`c.yaml` is not a settings file: it is not UTF-8 text";
  EXPECT_EQ(refusal("\x7f"
                    "ELF\x02\x01\x01\xff\xfe"),
            expected);
  EXPECT_EQ(refusal(std::string("epochs: 3\0", 10)), expected);
}

TEST_F(YamlFile, NestingBombs) {
  const std::string flow = refusal("epochs: " + std::string(100000, '['));
  EXPECT_EQ(flow.substr(0, 28), "`c.yaml:1` is not valid YAML");
  const std::string maps = refusal(std::string(100000, '{'));
  EXPECT_EQ(maps.substr(0, 28), "`c.yaml:1` is not valid YAML");
  const std::string closed =
      refusal("epochs: " + std::string(50000, '[') + std::string(50000, ']'));
  EXPECT_EQ(closed.substr(0, 28), "`c.yaml:1` is not valid YAML");
  std::string block;
  for (int i = 0; i < 1000; ++i) block += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_NE(refusal(block).find("c.yaml"), std::string::npos);
}

TEST_F(YamlFile, LaughsAndLoopsOfAnchorsEnd) {
  EXPECT_EQ(refusal("visible_gpus: &a [*a]\n"),
            "`visible_gpus` must be a single value or a plain list (c.yaml:1)");
  EXPECT_EQ(refusal("data: &d\n  data: *d\n").substr(0, 43),
            "there is no setting `data.data` (c.yaml:2).");
  EXPECT_EQ(refusal("visible_gpus: [&a [x, x], &b [*a, *a], &c [*b, *b], [*c, *c]]\n"),
            "`visible_gpus` must be a single value or a plain list (c.yaml:1)");
}

TEST_F(YamlFile, TooLarge) {
  EXPECT_EQ(refusal(std::string(2 << 20, '#')),
            "`c.yaml` is over 1 MiB, too large for a settings file");
}

TEST_F(YamlFile, FilesThatCannotBeRead) {
  const std::string missing = folder_.path().string() + "/none.yaml";
  EXPECT_EQ(without_folder(sentence_of([&] { Config::from_yaml(missing); }, ErrorKind::io)),
            "cannot open the settings file `none.yaml`: No such file or directory");
  EXPECT_EQ(sentence_of([&] { resolve_file(folder_.path().string()); }, ErrorKind::io),
            "`" + folder_.path().string() + "` is a folder, not a settings file");
}

}  // namespace tandem
