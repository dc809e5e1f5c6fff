#include "util/atomic_file.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>

#include "util/child.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace fs = std::filesystem;
namespace {

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// In this process alone: a disk of 64 KiB at `folder`. False where it may not mount.
bool mount_a_small_disk(const fs::path& folder) {
  return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=64k") == 0;
}

void limit_file_size(rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace

TEST(AtomicFile, WritesAndReplacesWholeFiles) {
  const TestFolder folder;
  const auto path = folder / "a.bin";
  const std::string bytes("zero \0 inside", 13);
  write_file_atomically(path, bytes);
  EXPECT_EQ(read_file(path), bytes);
  write_file_atomically(path, std::string(300'000, 'x'));
  EXPECT_EQ(read_file(path), std::string(300'000, 'x'));
  write_file_atomically(path, "");
  EXPECT_EQ(read_file(path), "");
  EXPECT_EQ(entries(folder.path()), 1u) << "a draft was left";
}

TEST(AtomicFile, WritesToANameInTheCurrentFolder) {
  const TestFolder folder;
  const ChildEnd end = in_child([&] {
    fs::current_path(folder.path());
    write_file_atomically("plain", "text");
  });
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(contents(folder / "plain"), "text");
}

TEST(AtomicFile, LeavesTheOldFileWhenTheDiskIsFull) {
  const TestFolder folder;
  const auto path = folder / "a.bin";
  const ChildEnd end = in_child([&] {
    const bool small_disk = mount_a_small_disk(folder.path());
    if (!small_disk) limit_file_size(64 << 10);
    write_file_atomically(path, "old");
    const Thrown thrown =
        thrown_by([&] { write_file_atomically(path, std::string(1 << 20, 'x')); });
    EXPECT_EQ(thrown.kind, "io");
    EXPECT_TRUE(contains(thrown.sentence, "cannot write `" + folder.path().string()));
    if (small_disk) {
      EXPECT_TRUE(contains(thrown.sentence, ": No space left on device")) << thrown.sentence;
      EXPECT_EQ(thrown.hint, "free some space; what was saved before is untouched");
    }
    EXPECT_EQ(contents(path), "old");
    EXPECT_EQ(entries(folder.path()), 1u);
    if (::testing::Test::HasFailure()) _exit(1);
  });
  EXPECT_EQ(end.code, 0) << end.out << end.err;
}

TEST(AtomicFile, LeavesTheOldFileWhenFilesMayNotBeThatLarge) {
  const TestFolder folder;
  const auto path = folder / "a.bin";
  write_file_atomically(path, "old");
  const ChildEnd end = in_child([&] {
    limit_file_size(4096);
    write_file_atomically(path, std::string(8192, 'x'));
  });
  EXPECT_EQ(end.code, 99);
  EXPECT_TRUE(contains(end.err, ": File too large")) << end.err;
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, SaysWhyAFolderRefuses) {
  const TestFolder folder;
  put(folder / "plain", "");
  const auto below = folder / "plain" / "a";
  const Thrown write = thrown_by([&] { write_file_atomically(below, "x"); });
  EXPECT_EQ(write.kind, "io");
  EXPECT_TRUE(contains(write.sentence, ": Not a directory")) << write.sentence;
  const Thrown make = thrown_by([&] { make_folder(below); });
  EXPECT_EQ(make.kind, "io");
  EXPECT_EQ(make.sentence, "cannot make the folder `" + below.string() + "`: Not a directory");
}

TEST(AtomicFile, AFolderThatMayNotBeWrittenGivesAHint) {
  const TestFolder folder;
  fs::permissions(folder.path(), fs::perms(0555));
  const ChildEnd end = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return;
    const Thrown thrown = thrown_by([&] { write_file_atomically(folder / "a", "x"); });
    std::fprintf(stdout, "%s|%s|%s", thrown.kind.c_str(), thrown.sentence.c_str(),
                 thrown.hint.c_str());
  });
  EXPECT_TRUE(end.out.starts_with("io|cannot write `")) << end.out;
  EXPECT_TRUE(contains(end.out, ": Permission denied|choose a folder you may write to"));
}

TEST(AtomicFile, AFolderIsAskedBeforeAnythingIsMade) {
  const TestFolder folder;
  check_may_write(folder.path());
  fs::permissions(folder.path(), fs::perms(0555));
  const ChildEnd end = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return;
    const Thrown thrown = thrown_by([&] { check_may_write(folder.path()); });
    std::fprintf(stdout, "%s|%s|%s", thrown.kind.c_str(), thrown.sentence.c_str(),
                 thrown.hint.c_str());
  });
  EXPECT_EQ(end.out, "io|cannot write into `" + folder.path().string() +
                         "`: Permission denied|choose a folder you may write to");
  EXPECT_EQ(thrown_by([&] { check_may_write(folder / "missing"); }).kind, "io");
}

TEST(AtomicFile, ReadingWhatIsNotThereNamesIt) {
  const TestFolder folder;
  const auto path = folder / "missing";
  const Thrown thrown = thrown_by([&] { read_file(path); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_EQ(thrown.sentence, "cannot read `" + path.string() + "`: No such file or directory");
  EXPECT_EQ(thrown_by([&] { read_file(folder.path()); }).kind, "io") << "a folder is no file";
  EXPECT_EQ(thrown_by([&] { sync_to_disk(path); }).sentence,
            "cannot force to disk `" + path.string() + "`: No such file or directory");
}

}  // namespace tandem::tests
