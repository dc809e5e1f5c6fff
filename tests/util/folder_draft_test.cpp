#include <gtest/gtest.h>

#include <random>

#include "util/atomic_file.h"
#include "util/child.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace fs = std::filesystem;
namespace {

void save_folder(const fs::path& place, const std::string& text) {
  FolderDraft draft(place);
  make_folder(draft.path() / "inner");
  write_file_atomically(draft.path() / "first", text);
  write_file_atomically(draft.path() / "inner" / "second", text);
  draft.commit();
}

}  // namespace

TEST(FolderDraft, AppearsAtCommitOnly) {
  const TestFolder folder;
  const auto place = folder / "a";
  FolderDraft draft(place);
  put(draft.path() / "file", "text");
  EXPECT_FALSE(fs::exists(place));
  EXPECT_EQ(draft.path().parent_path(), place.parent_path()) << "a rename needs the same disk";
  draft.commit();
  EXPECT_EQ(contents(place / "file"), "text");
}

TEST(FolderDraft, VanishesWithoutCommit) {
  const TestFolder folder;
  {
    FolderDraft draft(folder / "a");
    put(draft.path() / "file", "text");
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(FolderDraft, ChangesPlacesWithAnExistingFolder) {
  const TestFolder folder;
  save_folder(folder / "a", "old");
  put(folder / "a" / "only old", "x");
  save_folder(folder / "a", "new");
  EXPECT_EQ(contents(folder / "a" / "first"), "new");
  EXPECT_FALSE(fs::exists(folder / "a" / "only old"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << "the old one is left";
}

TEST(FolderDraft, WorksInTheCurrentFolder) {
  const TestFolder folder;
  const ChildEnd end = in_child([&] {
    fs::current_path(folder.path());
    save_folder("a", "old");
    save_folder("a", "new");
  });
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(contents(folder / "a" / "first"), "new");
}

TEST(FolderDraft, LeftoversAreRemovedAndNothingElse) {
  const TestFolder folder;
  make_folder(folder / ".draft-1-step-5" / "inner");
  put(folder / ".draft-2-latest", "");
  make_folder(folder / "step-5");
  put(folder / "notes", "");
  FolderDraft::remove_leftovers(folder.path());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
  EXPECT_TRUE(fs::exists(folder / "step-5"));
  FolderDraft::remove_leftovers(folder / "missing");
  // Of a file system without exchanging renames: what had to make room comes back.
  for (const char* made : {".aside-step-3", ".aside-step-4", "step-4", ".draft-1-step-3"})
    make_folder(folder / made);
  put(folder / ".aside-step-3" / "a", "old");
  put(folder / ".aside-step-4" / "a", "old");
  put(folder / "step-4" / "a", "new");
  put(folder / ".draft-1-step-3" / "a", "half");
  FolderDraft::remove_leftovers(folder.path());
  EXPECT_EQ(contents(folder / "step-3" / "a"), "old");
  EXPECT_EQ(contents(folder / "step-4" / "a"), "new");
  for (const auto& entry : fs::directory_iterator(folder.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
}

TEST(FolderDraft, CannotBeMadeUnderAFile) {
  const TestFolder folder;
  put(folder / "plain", "");
  const Thrown thrown = thrown_by([&] { FolderDraft draft(folder / "plain" / "a"); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.sentence, "cannot make the folder")) << thrown.sentence;
}

TEST(FolderDraft, IsWholeWhenItsProcessIsKilledAtAnyMoment) {
  const TestFolder folder;
  const auto place = folder / "a";
  save_folder(place, std::string(1000, 'a'));
  std::mt19937 random(7);
  int killed = 0;
  for (int round = 0; round < 50; ++round) {
    killed += killed_after(random() % 20'000, [&] {
      for (int i = 0;; ++i) save_folder(place, std::string(1000 + i % 7, 'a' + i % 26));
    });
    const std::string first = contents(place / "first");
    ASSERT_GE(first.size(), 1000u) << "round " << round;
    ASSERT_EQ(first, std::string(first.size(), first[0]));
    ASSERT_EQ(contents(place / "inner" / "second"), first) << "old and new parts mixed";
    FolderDraft::remove_leftovers(folder.path());
    ASSERT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  }
  EXPECT_EQ(killed, 50);
}

TEST(PointLink, IsMadeAndReplaced) {
  const TestFolder folder;
  point_link(folder / "latest", "step-1");
  EXPECT_EQ(fs::read_symlink(folder / "latest"), "step-1");
  point_link(folder / "latest", "step-2");
  EXPECT_EQ(fs::read_symlink(folder / "latest"), "step-2");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(PointLink, IsNeverMissingWhileItIsReplaced) {
  const TestFolder folder;
  point_link(folder / "latest", "0");
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0;; ++i) point_link(folder / "latest", std::to_string(i));
  }
  int missing = 0;
  for (int i = 0; i < 20'000; ++i) missing += !fs::is_symlink(folder / "latest");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(missing, 0);
}

TEST(PointLink, DoesNotReplaceAFolderAndLeavesNoDraft) {
  const TestFolder folder;
  make_folder(folder / "latest" / "inner");
  const Thrown thrown = thrown_by([&] { point_link(folder / "latest", "step-1"); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.sentence, "cannot put in place `")) << thrown.sentence;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

}  // namespace tandem::tests
