#include "observe/watch.h"

#include <gtest/gtest.h>

#include "observe/made_run.h"
#include "util/child.h"
#include "util/scratch.h"
#include "util/text.h"

namespace tandem::tests {
namespace {

using Lines = std::vector<std::string>;

std::string metric(int64_t step, double time, const std::string& more = "") {
  return "{\"step\":" + std::to_string(step) + ",\"split\":\"train\",\"loss\":2.5" + more +
         ",\"time\":" + std::to_string(time) + "}\n";
}

std::string beginning(int64_t first, int64_t total, int64_t pid = 0,
                      const char* host = "elsewhere") {
  return "{\"time\":1,\"kind\":\"" + std::string(first ? "resume" : "start") +
         "\",\"step\":" + std::to_string(first) + ",\"total_steps\":" + std::to_string(total) +
         ",\"host\":\"" + host + "\",\"pid\":" + std::to_string(pid) + ",\"devices\":[]}\n";
}

void append_to(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

}  // namespace

TEST(GrowingFile, GivesWholeLinesAsTheyCome) {
  const TestFolder scratch;
  GrowingFile file(scratch / "f");
  EXPECT_TRUE(file.read().lines.empty()) << "not there yet";
  append_to(scratch / "f", "one\ntw");
  EXPECT_EQ(file.read().lines, (Lines{"one"}));
  EXPECT_TRUE(file.read().lines.empty());
  append_to(scratch / "f", "o\n\nthree\n");
  EXPECT_EQ(file.read().lines, (Lines{"two", "", "three"}));
}

TEST(GrowingFile, ReadsAReplacedFileAnew) {
  const TestFolder scratch;
  GrowingFile file(scratch / "f");
  append_to(scratch / "f", "one\ntwo\n");
  EXPECT_FALSE(file.read().anew);
  write_file_atomically(scratch / "f", "one\n");
  const auto replaced = file.read();
  EXPECT_TRUE(replaced.anew);
  EXPECT_EQ(replaced.lines, (Lines{"one"}));
  std::filesystem::resize_file(scratch / "f", 0);
  EXPECT_TRUE(file.read().anew);
}

TEST(GrowingFile, ThatCannotBeReadIsAnIoError) {
  const TestFolder scratch;
  put(scratch / "plain", "");
  GrowingFile file(scratch / "plain" / "f");
  EXPECT_EQ(thrown_by([&] { file.read(); }).kind, "io");
}

TEST(RunWatch, RefusesWhatIsNoRun) {
  const TestFolder scratch;
  const Thrown missing = thrown_by([&] { RunWatch watch(scratch / "no"); });
  EXPECT_EQ(missing.kind, "config");
  EXPECT_EQ(missing.sentence, "there is no folder `" + (scratch / "no").string() + "`");
  const Thrown empty = thrown_by([&] { RunWatch watch(scratch.path()); });
  EXPECT_EQ(empty.kind, "config");
  EXPECT_EQ(empty.sentence, "`" + scratch.path().string() +
                                "` holds no run: it has neither metrics.jsonl nor config.yaml");
  EXPECT_EQ(empty.hint, "name the run folder that `tandem train` printed");
}

TEST(RunWatch, FollowsStepsAndTellsWhatIsLeft) {
  const TestFolder run;
  put(run / "config.yaml", "");
  RunWatch watch(run.path());
  EXPECT_FALSE(watch.read());
  EXPECT_EQ(watch.line(), "no step yet");
  append_to(run / "events.jsonl", beginning(0, 100));
  append_to(run / "metrics.jsonl", metric(1, 1000) + metric(2, 1002, ",\"gradient_norm\":0.25"));
  EXPECT_TRUE(watch.read());
  EXPECT_EQ(watch.step(), 2);
  EXPECT_EQ(watch.total_steps(), 100);
  EXPECT_DOUBLE_EQ(watch.seconds_left().value(), 2.0 * 98);
  EXPECT_EQ(watch.line(),
            "step 2/100  loss 2.5000  norm 0.25  lr 0.0e+00  0 tok/s  wait 0.0%  left 3m 16s");
  EXPECT_EQ(watch.bar_line(62), "[------------------------]   2/100  loss 2.5000  left 3m 16s");
  append_to(run / "metrics.jsonl", "{\"step\":2,\"split\":\"val\",\"loss\":2.75}\n");
  EXPECT_TRUE(watch.read());
  EXPECT_TRUE(contains(watch.line(), "loss 2.5000  val 2.7500  norm"));
  EXPECT_FALSE(watch.read());
}

TEST(RunWatch, TheTimeBetweenTwoStartsIsNobodysSpeed) {
  const TestFolder run;
  append_to(run / "events.jsonl", beginning(0, 100));
  append_to(run / "metrics.jsonl", metric(1, 10) + metric(2, 12));
  append_to(run / "metrics.jsonl", metric(3, 5000) + metric(4, 5001));
  append_to(run / "events.jsonl",
            "{\"time\":4990,\"kind\":\"resume\",\"step\":2,\"total_steps\":100}\n");
  RunWatch watch(run.path());
  watch.read();
  EXPECT_DOUBLE_EQ(watch.seconds_left().value(), 96);
}

// A decoder's lowest may be from before its discriminators began, and is not kept.
TEST(BestValidation, IsTheOneTheRunKeeps) {
  const auto validation = [](int64_t step, double loss, bool best) {
    return MetricLine{.step = step, .validation = true, .best = best, .values = {{"loss", loss}}};
  };
  BestValidation told, untold;
  EXPECT_FALSE(told.line());
  told.take(validation(10, 0.25, true));
  told.take(validation(20, 0.75, true));
  told.take(validation(30, 0.5, true));
  told.take(validation(40, 0.375, false));
  EXPECT_EQ(told.line()->step, 30);
  for (const double loss : {3.0, 1.0, 2.0})
    untold.take(validation(untold.line() ? 2 : 1, loss, false));
  EXPECT_EQ(untold.line()->step, 2) << "of an earlier version's run the lowest";
  EXPECT_EQ(untold.line()->value("loss"), 1.0);
}

TEST(RunWatch, ALossThatIsNotFiniteIsShownAsSuch) {
  const TestFolder run;
  put(run / "metrics.jsonl", "{\"step\":1,\"split\":\"train\",\"loss\":null}\n");
  RunWatch watch(run.path());
  watch.read();
  EXPECT_TRUE(contains(watch.line(), "step 1/0  loss nan")) << watch.line();
}

TEST(RunWatch, ForgetsStepsThatAResumeTookBack) {
  const TestFolder run;
  append_to(run / "events.jsonl", beginning(0, 100));
  { make_metrics(run, 0, 60); }
  RunWatch watch(run.path());
  watch.read();
  EXPECT_EQ(watch.step(), 60);
  { make_metrics(run, 40, 45); }
  append_to(run / "events.jsonl", beginning(40, 100));
  EXPECT_TRUE(watch.read());
  EXPECT_EQ(watch.step(), 45);
}

TEST(RunWatch, TellsHowARunStands) {
  const TestFolder run;
  make_whole_run(run);
  RunWatch watch(run.path());
  watch.read();
  const auto lines = split(watch.state(), '\n');
  ASSERT_EQ(lines.size(), 6U) << watch.state();
  EXPECT_EQ(lines[0], "run         " + run.path().string());
  EXPECT_EQ(lines[1], "state       finished");
  EXPECT_TRUE(lines[2].starts_with("last step   step 100/100  loss 2.14")) << lines[2];
  EXPECT_EQ(lines[3], "validation  3.0000 after step 100, best 3.0000 after step 100");
  EXPECT_EQ(lines[4],
            "device      /GPU:0: 85% busy (deviation 5%, lowest 80%), peak 1.0 GiB of 4.0 GiB");
}

TEST(RunStanding, FollowsTheLastStart) {
  const auto standing = [](const std::string& events) {
    return standing_of(parse_run_events(events));
  };
  const std::string stop = "{\"kind\":\"stop\",\"step\":7,\"text\":\"interrupted after step 7\"}\n";
  EXPECT_EQ(standing("").kind, RunStanding::running);
  EXPECT_EQ(standing("").words, "waiting for its first step");
  EXPECT_EQ(standing(beginning(0, 9, 5)).words, "running (process 5 on elsewhere)");
  EXPECT_EQ(standing(beginning(0, 9) + stop).kind, RunStanding::stopped);
  EXPECT_EQ(standing(beginning(0, 9) + stop).words, "stopped: interrupted after step 7");
  EXPECT_EQ(standing(beginning(0, 9) + stop + beginning(7, 9)).kind, RunStanding::running);
  EXPECT_EQ(standing(beginning(0, 9) + "{\"kind\":\"finish\"}\n").kind, RunStanding::finished);
  EXPECT_EQ(standing(beginning(0, 9) + "{\"kind\":\"fail\",\"text\":\"no\"}\n").words,
            "failed: no");
}

TEST(RunStanding, AProcessThatIsGoneWasKilled) {
  const TestFolder run;
  RunEvents events(run / "events.jsonl");
  const ChildEnd child = in_child([&] { events.add(beginning_event(0, 9)); });
  ASSERT_EQ(child.code, 0);
  const RunStanding gone = standing_of(parse_run_events(contents(run / "events.jsonl")));
  EXPECT_EQ(gone.kind, RunStanding::gone);
  EXPECT_TRUE(gone.words.ends_with(" is gone and did not say its end")) << gone.words;
  events.add(beginning_event(0, 9));  // this very process
  EXPECT_EQ(standing_of(parse_run_events(contents(run / "events.jsonl"))).kind,
            RunStanding::running);
}

TEST(RunEvents, SurviveBeingWritten) {
  const TestFolder run;
  RunEvents events(run / "e");
  RunEvent start = beginning_event(3, 9);
  start.devices = {{"/GPU:0", "NVIDIA \"X\" \xFF"}};
  events.add(start);
  events.add({.kind = "plan", .step = 3, .rows = {{"a", "b"}}});
  append_to(run / "e", "{\"kind\":5}\n[]\n{\"kind\":\"cut");
  const auto read = parse_run_events(contents(run / "e"));
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].kind, "resume");
  EXPECT_EQ(read[0].step, 3);
  EXPECT_EQ(read[0].total_steps, 9);
  EXPECT_EQ(read[0].pid, getpid());
  EXPECT_EQ(read[0].host, start.host);
  EXPECT_GT(read[0].time, 1.7e9);
  EXPECT_EQ(read[0].devices.at(0).second, "NVIDIA \"X\" \xEF\xBF\xBD");
  EXPECT_EQ(read[1].rows, (std::vector<std::pair<std::string, std::string>>{{"a", "b"}}));
}

TEST(RunEvents, ThatCannotBeWrittenAreAnIoError) {
  const TestFolder run;
  put(run / "plain", "");
  RunEvents events(run / "plain" / "e");
  const Thrown thrown = thrown_by([&] { events.add({.kind = "skip"}); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_EQ(thrown.sentence, "cannot write `" + (run / "plain" / "e").string() + "`");
}

}  // namespace tandem::tests
