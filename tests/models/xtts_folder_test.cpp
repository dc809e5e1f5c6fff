#include "models/xtts/xtts_folder.h"

#include <gtest/gtest.h>

#include "models/xtts_folder_files.h"
#include "util/scratch.h"

namespace tandem::tests {

TEST(XttsFolder, OpensOursAndTakesTheTextIdsOfTheVocabulary) {
  const TestFolder folder;
  write_settings(folder);
  write_tensors(folder / "model.safetensors", some_of_xtts());
  const XttsFolder open = XttsFolder::open(folder.path());
  EXPECT_EQ(open.config.gpt.start_text_token, 3);
  EXPECT_EQ(open.config.gpt.stop_text_token, 0);
  EXPECT_EQ(open.config.gpt.text_tokens, 6) << "one more than the largest id";
  EXPECT_EQ(open.weights_file.filename(), "model.safetensors");
  EXPECT_TRUE(open.speakers_file.empty());
  EXPECT_TRUE(open.dvae_file.empty());
  const auto weights = open.open_weights();
  EXPECT_EQ(weights.prefix, "");
  EXPECT_TRUE(weights.file->has("gpt.mel_embedding.weight"));
}

TEST(XttsFolder, OpensCoquisAndTheTrainersCheckpoints) {
  const TestFolder folder;
  write_settings(folder);
  write_state(folder / "checkpoint_90.pth", "xtts.", some_of_xtts());
  EXPECT_EQ(XttsFolder::open(folder.path()).weights_file.filename(), "checkpoint_90.pth");
  write_state(folder / "best_model_9.pth", "xtts.", some_of_xtts());
  write_state(folder / "best_model_10.pth", "xtts.", some_of_xtts());
  const XttsFolder trainer = XttsFolder::open(folder.path());
  EXPECT_EQ(trainer.weights_file.filename(), "best_model_10.pth");
  EXPECT_EQ(trainer.open_weights().prefix, "model/xtts.");
  write_state(folder / "model.pth", "", some_of_xtts());
  const XttsFolder coqui = XttsFolder::open(folder.path());
  EXPECT_EQ(coqui.weights_file.filename(), "model.pth");
  EXPECT_EQ(coqui.open_weights().prefix, "model/");
}

TEST(XttsFolder, FindsWhatElseTheFolderHolds) {
  const TestFolder folder;
  write_settings(folder);
  write_state(folder / "model.pth", "", some_of_xtts());
  for (const char* name : {"speakers_xtts.pth", "dvae.pth", "mel_stats.pth"})
    folder.write(name, "");
  const XttsFolder coqui = XttsFolder::open(folder.path());
  EXPECT_EQ(coqui.speakers_file.filename(), "speakers_xtts.pth");
  EXPECT_EQ(coqui.dvae_file.filename(), "dvae.pth");
  EXPECT_EQ(coqui.mel_stats_file.filename(), "mel_stats.pth");
}

TEST(XttsFolder, ASingleFileStandsForItsFolder) {
  const TestFolder folder;
  write_settings(folder);
  write_state(folder / "model.pth", "", some_of_xtts());
  write_state(folder / "mine.pth", "xtts.", some_of_xtts());
  const XttsFolder open = XttsFolder::open(folder / "mine.pth");
  EXPECT_EQ(open.weights_file.filename(), "mine.pth");
  EXPECT_EQ(open.path, folder.path());
}

TEST(XttsFolder, TakesTheVocabularyThatATrainersSettingsName) {
  const TestFolder folder;
  write_settings(folder);
  write_state(folder / "best_model.pth", "xtts.", some_of_xtts());
  std::filesystem::create_directories(folder / "original");
  std::filesystem::rename(folder / "vocab.json", folder / "original/vocab.json");
  EXPECT_EQ(thrown_by([&] { XttsFolder::open(folder.path()); }).kind, "io");
  std::string settings = contents(folder / "config.json");
  const std::string empty = "\"tokenizer_file\": \"\"";
  settings.replace(settings.find(empty), empty.size(),
                   "\"tokenizer_file\": \"original/vocab.json\"");
  put(folder / "config.json", settings);
  EXPECT_EQ(XttsFolder::open(folder.path()).vocabulary_file, folder / "original/vocab.json");
}

TEST(XttsFolder, NamesTheMissingFileAndWhatACompleteFolderHolds) {
  const TestFolder folder;
  const std::string complete =
      "; a complete folder holds the weights (model.pth, best_model.pth or model.safetensors), "
      "config.json and vocab.json";
  const auto refusal = [&](const std::filesystem::path& path) {
    const Thrown thrown = thrown_by([&] { XttsFolder::open(path); });
    EXPECT_EQ(thrown.kind, "io");
    return thrown.sentence;
  };
  const std::string name = "`" + folder.path().string() + "`";
  EXPECT_EQ(refusal(folder / "none"),
            "there is no model `" + (folder / "none").string() + "`" + complete);
  EXPECT_EQ(refusal(folder.path()), name + " has no weights" + complete);
  write_state(folder / "model.pth", "", some_of_xtts());
  EXPECT_EQ(refusal(folder.path()), name + " has no config.json" + complete);
  folder.write("config.json", format_xtts_config(xtts_preset("tiny")));
  EXPECT_EQ(refusal(folder.path()), name + " has no vocab.json" + complete);
}

TEST(XttsFolder, RefusesAVocabularyWithoutStart) {
  const TestFolder folder;
  write_settings(folder);
  write_state(folder / "model.pth", "", some_of_xtts());
  std::string vocabulary = small_vocabulary();
  for (size_t at; (at = vocabulary.find("[START]")) != vocabulary.npos;)
    vocabulary.replace(at, 7, "[BEGIN]");
  put(folder / "vocab.json", vocabulary);
  const Thrown thrown = thrown_by([&] { XttsFolder::open(folder.path()); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(contains(thrown.sentence, "has no token [START], and config.json gives no id for it"))
      << thrown.sentence;
}

TEST(XttsFolder, RefusesWeightsThatAreNoXtts) {
  const TestFolder folder;
  write_settings(folder);
  write_tensors(folder / "model.safetensors", {{"a", at::ones({1})}});
  const Thrown thrown = thrown_by([&] { XttsFolder::open(folder.path()).open_weights(); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(
      contains(thrown.sentence, "holds no XTTS model: none of its 1 tensors starts with `gpt.`"))
      << thrown.sentence;
}

}  // namespace tandem::tests
