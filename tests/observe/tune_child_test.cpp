#include "observe/tune_child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "observe/tune_reading.h"
#include "support/temporary_folder.h"
#include "tandem/error.h"
#include "util/signals.h"
#include "util/text.h"

namespace tandem {
namespace {

ChildEnd run_shell(const std::string& script, const ChildLimits& limits = {}) {
  return run_limited_child({"/bin/sh", "-c", script}, limits);
}

pid_t number_in_file(const std::filesystem::path& file) {
  for (int i = 0; i < 500; ++i) {
    pid_t id = 0;
    if (std::ifstream(file) >> id) return id;
    usleep(10'000);
  }
  return 0;
}

// Gone, or a zombie that somebody else has to reap.
bool is_gone(pid_t id) {
  for (int i = 0; i < 300; ++i) {
    std::string line;
    std::getline(std::ifstream("/proc/" + std::to_string(id) + "/stat"), line);
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || line.compare(name_end, 3, ") Z") == 0) return true;
    usleep(10'000);
  }
  return false;
}

}  // namespace

TEST(TuneChild, GivesTheExitCodeAndBothStreams) {
  const ChildEnd end = run_shell("echo out; echo err >&2; exit 5");
  EXPECT_EQ(end.how, ChildEnd::How::exited);
  EXPECT_EQ(end.code, 5);
  EXPECT_EQ(end.output, "out\n");
  EXPECT_EQ(end.errors, "err\n");
}

TEST(TuneChild, AProgramThatIsNotThereEndsWith127) {
  EXPECT_EQ(run_limited_child({"/no/such/program"}, {}).code, 127);
}

TEST(TuneChild, SaysWhichSignalKilledIt) {
  const ChildEnd end = run_shell("kill -9 $$");
  EXPECT_EQ(end.how, ChildEnd::How::signalled);
  EXPECT_EQ(end.signal, SIGKILL);
}

TEST(TuneChild, OneThatHangsIsEndedByItsTimeLimitWithAllItStarted) {
  const TestFolder folder;
  const std::string note = (folder / "id").string();
  const ChildEnd end = run_shell("trap '' TERM INT; sleep 100 & echo $! > " + note + "; sleep 100",
                                 {.seconds = 0.5});
  EXPECT_EQ(end.how, ChildEnd::How::over_time);
  EXPECT_LT(end.seconds, 30);
  const pid_t grandchild = number_in_file(note);
  ASSERT_GT(grandchild, 0);
  EXPECT_TRUE(is_gone(grandchild));
}

TEST(TuneChild, OneThatLeavesSomethingBehindDoesNot) {
  const TestFolder folder;
  const std::string note = (folder / "id").string();
  const ChildEnd end = run_shell("sleep 100 & echo $! > " + note, {.seconds = 20});
  EXPECT_EQ(end.how, ChildEnd::How::exited);
  EXPECT_TRUE(is_gone(number_in_file(note)));
}

TEST(TuneChild, OneThatTakesTooMuchHostMemoryIsEnded) {
  // `tail` keeps it all; nobody reads it.
  const ChildEnd end = run_shell("head -c 150000000 /dev/zero | tail -c 150000000 | sleep 60",
                                 {.seconds = 60, .host_bytes = 64 << 20});
  EXPECT_EQ(end.how, ChildEnd::How::over_memory);
  EXPECT_GT(end.host_peak, uint64_t{64} << 20);
}

TEST(TuneChild, IsTheFirstToGoWhenTheMachineRunsOutOfMemory) {
  EXPECT_EQ(run_shell("cat /proc/self/oom_score_adj").output, "1000\n");
}

TEST(TuneChild, NothingIsLeftAfterCtrlC) {
  const TestFolder folder;
  const std::string note = (folder / "id").string();
  catch_stop_signals();
  std::thread presses([&] {
    number_in_file(note);
    kill(getpid(), SIGINT);
  });
  const ChildEnd end = run_shell("echo $$ > " + note + "; sleep 100");
  presses.join();
  EXPECT_EQ(end.how, ChildEnd::How::stopped);
  EXPECT_EQ(kill(number_in_file(note), 0), -1);  // reaped, too
  request_stop(StopRequest::none);
}

TEST(TuneChild, NothingIsLeftWhenWeAreKilled) {
  const TestFolder folder;
  const std::string note = (folder / "id").string();
  const pid_t us = fork();
  if (us == 0) {
    run_shell("echo $$ > " + note + "; sleep 100");
    _exit(0);
  }
  const pid_t child = number_in_file(note);
  ASSERT_GT(child, 0);
  kill(us, SIGKILL);
  waitpid(us, nullptr, 0);
  EXPECT_TRUE(is_gone(child));
}

TEST(TuneReading, OutOfMemoryIsKnownByExitCodeFiveByBeingKilledAndByHalvedBatches) {
  const auto outcome = [](const std::string& script, const ChildLimits& limits = {}) {
    return reading_of(run_shell(script, limits)).outcome;
  };
  EXPECT_EQ(outcome("exit 5"), ProbeOutcome::out_of_memory);
  EXPECT_EQ(outcome("kill -9 $$"), ProbeOutcome::out_of_memory);
  EXPECT_EQ(outcome("head -c 150000000 /dev/zero | tail -c 150000000 | sleep 60",
                    {.seconds = 60, .host_bytes = 64 << 20}),
            ProbeOutcome::out_of_memory);
  EXPECT_EQ(outcome("echo '/GPU:0 ran out of memory: batches are worked on in 2 parts' >&2; "
                    "echo '{\"speed\": 3}'"),
            ProbeOutcome::out_of_memory);
  EXPECT_EQ(outcome("sleep 60", {.seconds = 0.2}), ProbeOutcome::too_slow);
  EXPECT_EQ(outcome("kill -ABRT $$"), ProbeOutcome::failed);
  EXPECT_EQ(outcome("echo no figures"), ProbeOutcome::failed);
  EXPECT_EQ(reading_of(run_shell("echo one; echo 'no such corpus' >&2; exit 4")).words,
            "no such corpus");
}

TEST(TuneReading, WhatAProgramSaidIsToldOnce) {
  const ChildEnd end{.how = ChildEnd::How::exited,
                     .code = 3,
                     .errors = "warning: something else\nerror: no clip fits\n"};
  EXPECT_EQ(last_words_of(end), "no clip fits");
  EXPECT_EQ(reading_of(end).words, "no clip fits");
}

TEST(TuneReading, FiguresAreThoseOfTheLastLine) {
  const TuneReading reading = reading_of(
      run_shell("echo hello; echo '{\"speed\": 12.5, \"peak_bytes\": 7, \"limit_bytes\": 8, "
                "\"wait_share\": 0.25, \"deviation\": 0.5, \"clips\": 9}'"));
  EXPECT_TRUE(reading.fits());
  EXPECT_EQ(reading.speed, 12.5);
  EXPECT_EQ(reading.peak_bytes, 7);
  EXPECT_EQ(reading.limit_bytes, 8);
  EXPECT_EQ(reading.wait_share, 0.25);
  EXPECT_EQ(reading.deviation, 0.5);
  EXPECT_EQ(reading.clips, 9);
}

TEST(TuneReading, BeingStoppedIsNoReading) {
  request_stop(StopRequest::interrupted);
  const ChildEnd end = run_shell("sleep 60");
  try {
    reading_of(end);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::interrupted);
  }
  request_stop(StopRequest::none);
}

TEST(TuneChild, SomeHostMemoryIsAlwaysLeftToOthers) {
  const uint64_t spare = host_memory_to_spare();
  EXPECT_GT(spare, uint64_t{64} << 20);
  EXPECT_LT(spare, static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace tandem
