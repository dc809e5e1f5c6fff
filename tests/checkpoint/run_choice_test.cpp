#include <gtest/gtest.h>

#include <regex>

#include "checkpoint/checkpoints.h"
#include "util/atomic_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace fs = std::filesystem;
namespace {

class RunChoiceTest : public ::testing::Test {
 protected:
  // A run as an earlier command left it.
  fs::path add_run(const std::string& name, const std::string& fingerprint, bool finished) {
    const fs::path path = scratch_ / name;
    RunFolder(path).save(checkpoint_of(5, finished), false, 1);
    write_file_atomically(path / "fingerprint", fingerprint + "\n");
    return path;
  }
  RunChoice choose(const std::string& wanted, bool fresh, const std::string& fingerprint = "f") {
    return choose_run_folder(wanted, fresh, fingerprint, scratch_.path());
  }
  bool is_new(const RunChoice& choice) const {
    static const std::regex by_time(R"(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-\d+)?)");
    return !choice.resumes && choice.path.parent_path() == scratch_.path() &&
           !fs::exists(choice.path) && std::regex_match(choice.path.filename().string(), by_time);
  }
  TestFolder scratch_;
};

}  // namespace

TEST_F(RunChoiceTest, AnExplicitNewFolderIsUsedAsItIs) {
  const RunChoice choice = choose(scratch_ / "mine", false);
  EXPECT_EQ(choice.path, scratch_ / "mine");
  EXPECT_FALSE(choice.resumes);
  EXPECT_EQ(choose(scratch_ / "mine", true).path, scratch_ / "mine");
}

TEST_F(RunChoiceTest, AnExplicitFolderWithoutACheckpointIsNotResumed) {
  make_folder(scratch_ / "mine");
  EXPECT_FALSE(choose(scratch_ / "mine", false).resumes);
  EXPECT_EQ(choose(scratch_ / "mine", true).path, scratch_ / "mine");
}

TEST_F(RunChoiceTest, AnExplicitUsedFolderIsResumed) {
  const fs::path used = add_run("mine", "f", false);
  EXPECT_EQ(choose(used, false).path, used);
  EXPECT_TRUE(choose(used, false).resumes);
}

TEST_F(RunChoiceTest, AnExplicitFinishedFolderIsResumedToo) {
  EXPECT_TRUE(choose(add_run("mine", "f", true), false).resumes) << "more steps may be asked for";
}

// A run of several parts, as `--stage all` makes.
TEST_F(RunChoiceTest, ARunOfPartsGoesOnUntilAllAreFinished) {
  const std::vector<std::string> parts = {"dvae", "gpt"};
  const auto choose_whole = [&](const std::string& wanted, bool fresh) {
    return choose_run_folder(wanted, fresh, "f", scratch_.path(), parts);
  };
  const fs::path whole = scratch_ / "whole";
  add_run("whole/dvae", "f", true);
  EXPECT_EQ(choose_whole("", false).path, whole) << "the second part has not begun";
  EXPECT_TRUE(choose_whole("", false).resumes);
  add_run("whole/gpt", "g", false);
  EXPECT_EQ(choose_whole("", false).path, whole);
  EXPECT_TRUE(is_new(choose_whole("", true)));
  EXPECT_TRUE(choose_whole(whole, false).resumes);
  EXPECT_EQ(choose_whole(whole, true).path, scratch_ / "whole-2");
  RunFolder(whole / "gpt").mark_finished();
  EXPECT_TRUE(is_new(choose_whole("", false)));
  EXPECT_TRUE(is_new(choose("", false))) << "a run without parts is another";
}

TEST_F(RunChoiceTest, FreshNeverGoesOverAUsedFolder) {
  const fs::path used = add_run("mine", "f", false);
  EXPECT_EQ(choose(used, true).path, scratch_ / "mine-2");
  EXPECT_FALSE(choose(used, true).resumes);
  make_folder(scratch_ / "mine-2");
  EXPECT_EQ(choose(used, true).path, scratch_ / "mine-3");
}

TEST_F(RunChoiceTest, TheDefaultIsTheNewestUnfinishedRunWithTheSameFingerprint) {
  add_run("2026-01-01_00-00-00", "f", false);
  const fs::path newest = add_run("2026-01-03_00-00-00", "f", false);
  add_run("2026-01-02_00-00-00", "f", false);
  add_run("2026-01-04_00-00-00", "other", false);
  const RunChoice choice = choose("", false);
  EXPECT_EQ(choice.path, newest);
  EXPECT_TRUE(choice.resumes);
}

TEST_F(RunChoiceTest, FinishedRunsAreLeftAlone) {
  add_run("2026-01-01_00-00-00", "f", true);
  EXPECT_TRUE(is_new(choose("", false)));
}

TEST_F(RunChoiceTest, RunsWithoutACheckpointAreLeftAlone) {
  make_folder(scratch_ / "2026-01-01_00-00-00");
  put(scratch_ / "2026-01-01_00-00-00" / "fingerprint", "f\n");
  put(scratch_ / "a file", "");
  EXPECT_TRUE(is_new(choose("", false)));
}

TEST_F(RunChoiceTest, FreshIgnoresUnfinishedRuns) {
  add_run("2026-01-01_00-00-00", "f", false);
  EXPECT_TRUE(is_new(choose("", true)));
}

TEST_F(RunChoiceTest, WithoutAnyRunsANewOneIsNamedByTheTime) {
  EXPECT_TRUE(is_new(choose("", false)));
  const RunChoice choice = choose_run_folder("", false, "f", scratch_ / "missing");
  EXPECT_EQ(choice.path.parent_path(), scratch_ / "missing");
}

}  // namespace tandem::tests
