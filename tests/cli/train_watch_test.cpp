// What a run leaves to look at, and `tandem train --watch`.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/byte_training.h"
#include "support/program.h"

namespace tandem {
namespace {

std::vector<std::string> short_run(const std::filesystem::path& run, const std::string& steps) {
  return byte_training(run, steps, {"--simulate-gpus", "1", "observe.log_step=1"});
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t event_files(const std::filesystem::path& run) {
  size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(run / "tensorboard"))
    count += file.path().filename().string().starts_with("events.out.tfevents.");
  return count;
}

}  // namespace

TEST(TrainView, LeavesEverythingToLookAt) {
  const TestFolder folder;
  const auto run = folder / "run";
  const ProgramRun first = run_program(short_run(run, "6"));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(has(first.out, "report: " + run.string() + "/report.html")) << first.out;
  for (const char* name : {"metrics.jsonl", "events.jsonl", "report.html"})
    EXPECT_TRUE(std::filesystem::exists(run / name)) << name;
  EXPECT_EQ(event_files(run), 1U);
  EXPECT_TRUE(has(text_of(run / "report.html"), "<p class=\"state finished\">"));

  const ProgramRun second = run_program(short_run(run, "9"));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(event_files(run), 2U) << "a run that goes on opens a new file";
  const std::string events = text_of(run / "events.jsonl");
  EXPECT_TRUE(has(events, "\"kind\":\"start\",\"step\":0,\"total_steps\":6")) << events;
  EXPECT_TRUE(has(events, "\"kind\":\"resume\",\"step\":6,\"total_steps\":9")) << events;
}

TEST(TrainView, WithoutTensorBoardWritesNoEvents) {
  const TestFolder folder;
  auto words = short_run(folder / "run", "2");
  words.push_back("observe.tensorboard=false");
  ASSERT_EQ(run_program(words).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "run" / "tensorboard"));
}

TEST(TrainWatch, ShowsAFinishedRunAndEnds) {
  const TestFolder folder;
  const auto run = folder / "run";
  ASSERT_EQ(run_program(short_run(run, "6")).code, 0);
  for (const bool once : {false, true}) {
    std::vector<std::string> words = {"train", "--watch", run.string()};
    if (once) words.push_back("--once");
    const ProgramRun watch = run_program(words);
    EXPECT_EQ(watch.code, 0) << watch.err;
    EXPECT_TRUE(has(watch.out, "run         " + run.string() + "\nstate       finished\n"))
        << watch.out;
    EXPECT_TRUE(has(watch.out, "last step   step 6/6  loss ")) << watch.out;
  }
}

TEST(TrainWatch, EndsWithAStageWhoseProcessIsGone) {
  const TestFolder folder;
  ASSERT_EQ(run_program(short_run(folder / "voice/dvae", "3")).code, 0);
  const ProgramRun watch = run_program({"train", "--watch", (folder / "voice").string()});
  EXPECT_EQ(watch.code, 0) << watch.err;
  EXPECT_TRUE(has(watch.out, "last step   step 3/3  loss ")) << watch.out;
}

TEST(TrainView, TellsOnceWhatHappenedBesideTheSteps) {
  const TestFolder folder;
  const auto run = folder / "run";
  const auto told = [&](const std::string& kind, const std::string& fault) {
    std::filesystem::remove_all(run);
    const ProgramRun training = run_program(short_run(run, "6"), {{"TANDEM_FAULT", fault}});
    EXPECT_EQ(training.code, 0) << training.err;
    const std::string events = text_of(run / "events.jsonl"), mark = "\"kind\":\"" + kind;
    size_t count = 0;
    for (size_t at = events.find(mark); at != std::string::npos; at = events.find(mark, at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(told("skip", "nan:rank=0,step=3"), 1U);
  EXPECT_EQ(told("memory", "oom:rank=0,step=3"), 1U);
  EXPECT_TRUE(has(text_of(run / "events.jsonl"), "/GPU:0 in 2")) << text_of(run / "events.jsonl");
}

TEST(TrainWatch, FollowsARunUntilItIsStopped) {
  const TestFolder folder;
  const auto run = folder / "run";
  Program training(short_run(run, "1000000"));
  const auto comes = [](const auto& condition) {
    for (int i = 0; i < 600 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return condition();
  };
  ASSERT_TRUE(comes([&] { return has(training.read("out"), "step 3/"); }));
  Program watch({"train", "--watch", run.string()});
  ASSERT_TRUE(comes([&] { return has(watch.read("out"), "/1000000  loss "); }));
  training.signal(SIGINT);
  EXPECT_EQ(training.wait().code, 130);
  const ProgramRun end = watch.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_TRUE(has(end.out, "state       stopped: interrupted after step ")) << end.out;
}

TEST(TrainWatch, TellsThatARunWasKilledAndMakesItsReport) {
  const TestFolder folder;
  const auto run = folder / "run";
  Program training(short_run(run, "1000000"));
  for (int i = 0; i < 600 && !has(training.read("out"), "step 3/"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  training.signal(SIGKILL);
  training.wait();
  EXPECT_FALSE(std::filesystem::exists(run / "report.html"));
  const ProgramRun watch = run_program({"train", "--watch", run.string(), "--report"});
  EXPECT_EQ(watch.code, 0) << watch.err;
  EXPECT_TRUE(has(watch.out, "state       killed: process ")) << watch.out;
  EXPECT_TRUE(has(watch.out, "report: " + (run / "report.html").string())) << watch.out;
  EXPECT_TRUE(has(text_of(run / "report.html"), "<p class=\"state gone\">"));
}

TEST(TrainWatch, EndsWithCtrlC) {
  const TestFolder folder;
  folder.write("run/config.yaml", "");
  Program watch({"train", "--watch", (folder / "run").string()});
  for (int i = 0; i < 600 && !has(watch.read("out"), "no step yet"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  watch.signal(SIGINT);
  const ProgramRun end = watch.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_TRUE(has(end.out, "state       waiting for its first step")) << end.out;
}

TEST(TrainWatch, RefusesWhatIsNoRun) {
  const TestFolder folder;
  const ProgramRun missing = run_program({"train", "--watch", (folder / "no").string()});
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.err, "error: there is no folder `" + (folder / "no").string() +
                             "` (hint: name the run folder that `tandem train` printed)\n");
  const ProgramRun empty = run_program({"train", "--watch", folder.path().string(), "--once"});
  EXPECT_EQ(empty.code, 1);
  EXPECT_TRUE(has(empty.err, "holds no run: it has neither metrics.jsonl nor config.yaml"));
}

TEST(TrainWatch, WordsThatDoNotGoTogetherAreWrongUsage) {
  const ProgramRun alone = run_program({"train", "--once"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_TRUE(has(alone.err, "--once goes with --watch, which was not given")) << alone.err;
  const ProgramRun more = run_program({"train", "--watch", "x", "training.seed=3"});
  EXPECT_EQ(more.code, 2);
  EXPECT_TRUE(has(more.err, "`training.seed=3` has no place beside --watch")) << more.err;
}

}  // namespace tandem
