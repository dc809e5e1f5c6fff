// Datasets no voice can be trained on: one sentence, exit code 3, nothing made.
#include <gtest/gtest.h>

#include "cli/voice_trainer.h"

namespace tandem {
namespace {

TEST(TrainRefusals, ADatasetWithoutAClipIsData) {
  const VoiceTrainer trainer;
  const std::string table = trainer.corpus.folder.write("empty/metadata.csv", "");
  trainer.expect_refused({"--train-data", table}, 3, "`" + table + "` holds no clip: it is empty");
}

// Prepared with a limit of its own, which is above what the model has places for.
TEST(TrainRefusals, ClipsTheModelCannotTakeAreData) {
  const VoiceTrainer trainer;
  const TestFolder& folder = trainer.corpus.folder;
  std::filesystem::create_directories(folder / "long/wavs");
  std::string table;
  for (const int seconds : {6, 7, 8}) {
    const std::string id = "clip" + std::to_string(seconds);
    write_recording(folder, "long/wavs/" + id + ".wav", seconds);
    table += id + "|a text of its own, " + id + "\n";
  }
  folder.write("long/metadata.csv", table);
  const std::string index = (folder / "long.index").string();
  const ProgramRun prepared =
      run_program({"prepare", (folder / "long").string(), "--language", "en", "--max-seconds", "30",
                   "--outlier-z", "0", "--out", index});
  ASSERT_EQ(prepared.code, 0) << prepared.err;
  for (const char* stage : {"dvae", "all"})
    trainer.expect_refused({"--stage", stage, "--train-data", index,
                            "data.tokenizer=" + (folder / "vocab.json").string()},
                           3, "the model can take none of the 3 clips (3 too long)");
}

TEST(TrainRefusals, OneClipIsNoTraining) {
  const VoiceTrainer trainer;
  const tests::SpeechFolder one(1);
  trainer.expect_refused({"--train-data", one.index}, 3, "has one clip");
}

}  // namespace
}  // namespace tandem
