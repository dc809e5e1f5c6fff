#include "observe/progress.h"

#include <gtest/gtest.h>

#include "util/child.h"
#include "util/log.h"
#include "util/scratch.h"
#include "util/text.h"

namespace tandem::tests {

TEST(Progress, TheBarFillsWithTheWork) {
  EXPECT_EQ(Progress::bar(0, 100, 10), "[----------]   0/100");
  EXPECT_EQ(Progress::bar(50, 100, 10), "[#####-----]  50/100");
  EXPECT_EQ(Progress::bar(99, 100, 10), "[#########-]  99/100");
  EXPECT_EQ(Progress::bar(100, 100, 10), "[##########] 100/100");
  EXPECT_EQ(Progress::bar(1, 3, 6), "[##----] 1/3");
}

TEST(Progress, TheBarHoldsWhateverItIsGiven) {
  EXPECT_EQ(Progress::bar(7, 5, 4), "[####] 7/5");
  EXPECT_EQ(Progress::bar(0, 0, 4), "[----] 0/0");
}

TEST(Progress, WithoutATerminalLinesComeNowAndThen) {
  const ChildEnd end = in_child([] {
    Progress progress(0, 25, 10);
    for (int step = 1; step <= 25; ++step) progress.update(step, "loss 1.0");
  });
  std::vector<std::string> starts;
  for (const std::string& line : split(end.out, '\n')) starts.push_back(line.substr(0, 19));
  EXPECT_EQ(starts, (std::vector<std::string>{"step 1/25  loss 1.0", "step 10/25  loss 1.",
                                              "step 20/25  loss 1.", "step 25/25  loss 1.", ""}));
  EXPECT_TRUE(contains(end.out, "step 10/25  loss 1.0  left ")) << end.out;
  EXPECT_TRUE(contains(end.out, "step 25/25  loss 1.0\n")) << "nothing is left at the end";
  EXPECT_EQ(end.err, "");
}

TEST(Progress, AResumedRunShowsItsFirstStep) {
  const ChildEnd end = in_child([] {
    Progress progress(7, 100, 50);
    progress.update(8, "a");
    progress.update(9, "b");
  });
  EXPECT_TRUE(end.out.starts_with("step 8/100  a"));
  EXPECT_FALSE(contains(end.out, "step 9/100"));
}

TEST(Progress, OnATerminalOneLineMovesAndLogLinesDoNotLandInIt) {
  SKIP_WITHOUT_TERMINALS();
  const ChildEnd end = in_child(
      [] {
        Progress progress(0, 4, 1);
        progress.update(1, "first");
        log_info("a line of the log");
        progress.update(4, "last");
      },
      Streams::terminal_for_both);
  const size_t first = end.err.find("\r\033[K[######------------------] 1/4  first  left ");
  const size_t line = end.err.find("\r\033[Ka line of the log\r\n");
  const size_t again = end.err.find("1/4  first", line);
  const size_t last = end.err.find("\r\033[K[########################] 4/4  last\r\n");
  ASSERT_NE(first, std::string::npos) << end.err;
  ASSERT_NE(line, std::string::npos) << end.err;
  ASSERT_NE(again, std::string::npos) << "the bar is drawn again";
  ASSERT_NE(last, std::string::npos) << end.err;
  EXPECT_LT(first, line);
  EXPECT_LT(again, last);
}

TEST(Progress, QuietShowsNothing) {
  SKIP_WITHOUT_TERMINALS();
  const ChildEnd end = in_child(
      [] {
        set_up_log({.verbosity = -1});
        Progress progress(0, 4, 1);
        for (int step = 1; step <= 4; ++step) progress.update(step, "x");
      },
      Streams::terminal_for_both);
  EXPECT_EQ(end.err, "");
}

}  // namespace tandem::tests
