// Every setting of a voice's training wrong once: one sentence, the right exit code, nothing made.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/voice_trainer.h"

namespace tandem {
namespace {

TEST(TrainRefusals, WrongValuesAreConfiguration) {
  const VoiceTrainer trainer;
  trainer.expect_refused({"--batch-size", "-1"}, 1, "`data.batch_size` must be");
  trainer.expect_refused({"training.dropout=2"}, 1, "`training.dropout` must be");
  trainer.expect_refused({"training.schedule=zigzag"}, 1, "training.schedule");
  trainer.expect_refused({"training.schedule=multistep", "training.milestones=5,x"}, 1,
                         "milestones");
  trainer.expect_refused({"--stage", "all", "training.stage_steps=1,2"}, 1, "stage_steps");
  trainer.expect_refused({"--stage", "gpt"}, 1, "a new model has none");
  trainer.expect_refused({"--stage", "decoder"}, 1, "train the gpt stage first");
}

TEST(TrainRefusals, WhatIsNotThereIsAFileError) {
  const VoiceTrainer trainer;
  const std::string nowhere = (trainer.corpus.folder / "nowhere").string();
  trainer.expect_refused({"--train-data", nowhere}, 4, "nowhere");
  trainer.expect_refused({"--val-data", nowhere}, 4, "nowhere");
  trainer.expect_refused({"--pretrained", nowhere}, 4, "there is no model");
  // A file where the run's folder should be.
  const ProgramRun blocked = run_program(
      trainer.words({"--checkpoint-dir", trainer.corpus.folder.write("taken", "") + "/run"}));
  EXPECT_EQ(blocked.code, 4) << blocked.err;
}

TEST(TrainRefusals, LowRankAdditionsTuneWhatWasTrained) {
  const VoiceTrainer trainer;
  trainer.expect_refused({"--stage", "all", "--lora-rank", "2"}, 1, "training.lora_rank is 2");
  ASSERT_EQ(run_program(trainer.words()).code, 0);
  const std::string dvae = trainer.run() + "/model", gpt = trainer.run() + "-gpt";
  const ProgramRun refused = run_program(trainer.words(
      {"--stage", "gpt", "--pretrained", dvae, "--lora-rank", "2", "--checkpoint-dir", gpt}));
  EXPECT_EQ(refused.code, 1) << refused.err;
  EXPECT_NE(refused.err.find("this one was not"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(gpt));
}

// A dataset nobody prepared: what is refused leaves nothing in it.
TEST(TrainRefusals, NothingIsPreparedForWhatCannotBe) {
  const VoiceTrainer trainer;
  const auto folder = trainer.corpus.folder.path();
  for (const char* made : {"tandem.index", "vocab.json", "tandem.index.dropped.tsv",
                           "tandem.index.report.html", "tandem.index.scan"})
    std::filesystem::remove(folder / made);
  const std::string taken = trainer.corpus.folder.write("taken", "");
  const auto held = [&] {
    return std::distance(std::filesystem::directory_iterator(folder),
                         std::filesystem::directory_iterator());
  };
  const auto before = held();
  for (const std::string stage : {"all", "dvae"}) {
    const auto refused = [&](std::vector<std::string> more, int code) {
      for (const std::string& word :
           {std::string("--stage"), stage, std::string("--train-data"), folder.string()})
        more.push_back(word);
      const ProgramRun run = run_program(trainer.words(more));
      EXPECT_EQ(run.code, code) << run.err;
      EXPECT_EQ(held(), before) << stage << " " << more.front() << " " << run.out;
    };
    refused({"--val-data", (folder / "nowhere").string()}, 4);
    refused({"--checkpoint-dir", taken + "/run"}, 4);
  }
}

// Each would be met hours later, by the second of three stages.
TEST(TrainRefusals, WhatTheSecondStageCannotDoIsSaidBeforeTheFirst) {
  const VoiceTrainer trainer;
  trainer.expect_refused({"--stage", "all", "training.fp8_products=true"}, 1,
                         "training.fp8_products=true is for a Hopper GPU");
  trainer.expect_refused({"--stage", "all", "data.language=xx", "observe.sample_count=2",
                          "observe.sample_text=" + trainer.corpus.folder.write("s.txt", "Hello.")},
                         3, "the language `xx` is not one of");
}

TEST(TrainRefusals, AVocabularyOfAnotherSizeIsNamed) {
  const VoiceTrainer trainer;
  const TestFolder& folder = trainer.corpus.folder;
  const std::string model = write_tiny_xtts(folder, "xtts");
  const std::string other = folder.write(
      "other.json",
      R"({"model":{"type":"BPE","unk_token":"[UNK]","vocab":{"[STOP]":0,"[UNK]":1,"[START]":2},"merges":[]}})");
  trainer.expect_refused({"--pretrained", model, "data.tokenizer=" + other}, 1,
                         "tokens, the model in");
}

TEST(TrainRefusals, ACheckpointOfAnotherSizeIsNotGoneOnWith) {
  const VoiceTrainer trainer;
  ASSERT_EQ(run_program(trainer.words({})).code, 0);
  const ProgramRun other =
      run_program(trainer.words({"--model-size", "small", "training.dvae_codes=0"}));
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("holds a run with other settings"), std::string::npos) << other.err;
  EXPECT_NE(other.err.find("--fresh"), std::string::npos);
}

}  // namespace
}  // namespace tandem
