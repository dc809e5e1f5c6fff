// `tandem train --stage all` as its user meets it: what it says to do works.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "cli/voice_trainer.h"
#include "util/scratch.h"

namespace tandem {
namespace {

std::vector<std::string> words_in(const std::string& command) {
  std::vector<std::string> words;
  std::istringstream in(command);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

TEST(TrainStages, TheCommandThatTakesABadStepAgainWorks) {
  const VoiceTrainer trainer;
  const Program::Variables fault = {{"TANDEM_FAULT", "nan:rank=0,step=2,steps=100"}};
  const std::vector<std::string> all = {"--stage", "all", "training.stage_steps=6,1,1",
                                        "training.max_bad_steps=2"};
  const ProgramRun first = run_program(trainer.words(all), fault);
  EXPECT_EQ(first.code, 6) << first.err;
  const std::string told =
      "begins at step 3, and lists its clips in clips.txt: the same command with ";
  const size_t at = first.err.find(told), end = first.err.find(" names the first tensor", at);
  ASSERT_NE(at, std::string::npos) << first.err;
  std::vector<std::string> again = all;
  for (const std::string& word :
       words_in(first.err.substr(at + told.size(), end - at - told.size())))
    again.push_back(word);
  const ProgramRun second = run_program(trainer.words(again), fault);
  EXPECT_EQ(second.code, 6) << second.err;
  EXPECT_NE(second.err.find("step 3: the first number that is not one comes out of"),
            std::string::npos)
      << second.err;
}

TEST(TrainStages, EachMayHaveSettingsOfItsOwn) {
  const VoiceTrainer trainer;
  const std::vector<std::string> own = {"gpt:data.batch_size=3", "gpt:training.learning_rate=2e-4",
                                        "dvae:training.weight_decay=0.5",
                                        "training.stage_steps=1,1,1"};
  std::vector<std::string> all = own;
  all.insert(all.end(), {"--stage", "all"});
  const ProgramRun run = run_program(trainer.words(all));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("gpt:data.batch_size=3"), std::string::npos) << run.err;
  const std::filesystem::path whole = trainer.run();
  const auto has = [&](const std::string& stage, const std::string& line) {
    const std::string settings = tests::contents(whole / stage / "config.yaml");
    return settings.find("\n  " + line + "  #") != std::string::npos;
  };
  EXPECT_TRUE(has("gpt", "batch_size: 3"));
  EXPECT_TRUE(has("gpt", "learning_rate: 0.0002"));
  EXPECT_TRUE(has("dvae", "batch_size: 4"));
  EXPECT_TRUE(has("dvae", "weight_decay: 0.5"));
  EXPECT_TRUE(has("decoder", "batch_size: 4"));
  EXPECT_FALSE(has("decoder", "weight_decay: 0.5"));
  // The same words for one stage alone: it goes on in that stage's folder, with its own settings.
  std::vector<std::string> one = own;
  one.insert(one.end(), {"--stage", "gpt", "--pretrained", (whole / "dvae/model").string(),
                         "--checkpoint-dir", (whole / "gpt").string(), "--max-steps", "2"});
  const ProgramRun more = run_program(trainer.words(one));
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_NE(more.out.find("goes on after step 1"), std::string::npos) << more.err;
  const ProgramRun refused =
      run_program(trainer.words({"--stage", "all", "gpt:training.multi_gpu=true"}));
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("`gpt:` sets training.multi_gpu, which holds for all stages"),
            std::string::npos)
      << refused.err;
}

// As the dvae stage alone does.
TEST(TrainStages, AnIndexThatCannotBeReadIsMadeAgain) {
  const VoiceTrainer trainer;
  const auto folder = trainer.corpus.folder.path();
  std::filesystem::remove(folder / "vocab.json");
  std::filesystem::resize_file(folder / "tandem.index", 100);
  const ProgramRun run = run_program(trainer.words(
      {"--stage", "all", "training.stage_steps=1,1,1", "--train-data", folder.string()}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("again"), std::string::npos) << run.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "vocab.json"));
}

// The model of a stage that has ended is written to its end; the next one does not begin.
TEST(TrainStages, StopsBetweenStages) {
  const VoiceTrainer trainer;
  Program program(trainer.words({"--stage", "all", "training.stage_steps=2,400,1"}));
  const std::filesystem::path whole = trainer.run();
  const auto ended = [&] { return std::filesystem::exists(whole / "dvae/model"); };
  for (int i = 0; i < 60'000 && !ended(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.signal(SIGTERM);
  const ProgramRun stopped = program.wait();
  EXPECT_EQ(stopped.code, 143) << stopped.err;
  EXPECT_NE(stopped.err.find("terminated "), std::string::npos) << stopped.err;
  EXPECT_FALSE(std::filesystem::exists(whole / "gpt/latest")) << stopped.err;
  const ProgramRun rest =
      run_program(trainer.words({"--stage", "all", "training.stage_steps=2,1,1"}));
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_TRUE(std::filesystem::exists(whole / "decoder/model"));
}

// One that is over between two looks is not met.
TEST(TrainStages, AreFollowedFromOneToTheNext) {
  const VoiceTrainer trainer;
  Program training(trainer.words({"--stage", "all", "training.stage_steps=3,150,1"}));
  const std::filesystem::path whole = trainer.run();
  for (int i = 0; i < 6000 && !std::filesystem::exists(whole / "dvae/events.jsonl"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  Program watch({"train", "--watch", whole.string()});
  EXPECT_EQ(training.wait().code, 0);
  const ProgramRun end = watch.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  for (const char* part : {"/dvae\nstate       finished\n", "waiting for the stage behind dvae",
                           "/gpt\nstate       finished\n", "waiting for the stage behind gpt",
                           "/decoder\nstate       finished\n"})
    EXPECT_NE(end.out.find(part), std::string::npos) << part << " in " << end.out;
}

}  // namespace
}  // namespace tandem
