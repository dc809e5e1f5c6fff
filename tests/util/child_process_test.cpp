#include "util/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "support/temporary_folder.h"

namespace tandem {
namespace {

ChildOptions within(std::chrono::milliseconds limit) {
  return {.deadline = std::chrono::steady_clock::now() + limit};
}

}  // namespace

TEST(ChildProcess, WordsArriveAsTheyAreAndNothingIsAShell) {
  ChildProcess child({"printf", "%s|", "a b", "$HOME; `ls`", ""});
  ASSERT_EQ(child.start_error(), 0);
  EXPECT_EQ(child.read_all(), "a b|$HOME; `ls`||");
  EXPECT_EQ(child.wait(), 0);
}

TEST(ChildProcess, AProgramThatIsNotThereIsAnErrnoNotACode) {
  const ChildProcess child({"no-such-program-anywhere"});
  EXPECT_EQ(child.start_error(), ENOENT);
}

TEST(ChildProcess, TellsTheExitCodeTheSignalAndTheLastWords) {
  ChildProcess failing({"sh", "-c", "echo first >&2; echo last words >&2; exit 9"});
  EXPECT_EQ(failing.read_all(), "");
  EXPECT_EQ(failing.wait(), 9);
  EXPECT_EQ(failing.last_words(), "last words");
  ChildProcess killed({"sh", "-c", "kill -TERM $$"});
  killed.read_all();
  EXPECT_EQ(killed.wait(), 128 + SIGTERM);
}

TEST(ChildProcess, GivesAnOpenFileAsDescriptorThreeAndNothingToRead) {
  const TestFolder folder;
  const int file = open(folder.write("text", "from the file").c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  ChildProcess child({"sh", "-c", "cat; cat <&3"}, {.input = file});
  EXPECT_EQ(child.read_all(), "from the file");
  EXPECT_EQ(child.wait(), 0);
  close(file);
}

TEST(ChildProcess, EndsAtItsDeadline) {
  ChildProcess child({"sleep", "60"}, within(std::chrono::milliseconds(50)));
  EXPECT_EQ(child.read_all(), "");
  EXPECT_TRUE(child.timed_out());
  EXPECT_EQ(child.wait(), 128);
}

TEST(ChildProcess, OnlyTheForegroundSharesOurGroupAndOurErrors) {
  const std::string ours = std::to_string(getpgrp());
  const std::vector<std::string> ask{"sh", "-c",
                                     "printf %s $(cut -d' ' -f5 /proc/$$/stat); echo heard >&2"};
  ChildProcess apart(ask);
  EXPECT_NE(apart.read_all(), ours);
  EXPECT_EQ(apart.wait(), 0);
  EXPECT_EQ(apart.last_words(), "heard");
  testing::internal::CaptureStderr();
  ChildProcess beside(ask, {.foreground = true});
  EXPECT_EQ(beside.read_all(), ours);
  EXPECT_EQ(beside.wait(), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "heard\n");
  EXPECT_EQ(beside.last_words(), "");
}

TEST(ChildProcess, LeavingItEndsIt) {
  pid_t number = 0;
  {
    ChildProcess child({"sh", "-c", "echo $$; exec sleep 60"}, {.foreground = true});
    std::byte first[32];
    const size_t got = child.read(first);
    number = std::stoi(std::string(reinterpret_cast<const char*>(first), got));
    EXPECT_EQ(kill(number, 0), 0);
  }
  EXPECT_EQ(kill(number, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

}  // namespace tandem
