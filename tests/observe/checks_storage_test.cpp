#include "observe/checks_storage.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/child.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

constexpr uint64_t mib = uint64_t{1} << 20, gib = uint64_t{1} << 30;

// A machine whose /data lies on `disk`, a partition of it, with the given line of mountinfo.
struct MadeMachine {
  TestFolder folder;
  StorageRoots roots;
  MadeMachine(const std::string& disk, const std::string& rotational, const std::string& type,
              const std::string& source = "none") {
    const std::string device = "sys/devices/" + disk;
    folder.write(device + "/queue/rotational", rotational + "\n");
    folder.write(device + "/" + disk + "1/partition", "1\n");
    std::filesystem::create_directories(folder / "sys/dev/block");
    std::filesystem::create_directory_symlink("../../devices/" + disk + "/" + disk + "1",
                                              folder / "sys/dev/block/250:1");
    const std::string point = std::filesystem::canonical(folder.path()).string() + "/my data";
    std::filesystem::create_directories(point + "/clips");
    std::string escaped = point;
    escaped.replace(escaped.rfind(' '), 1, "\\040");
    folder.write("mounts",
                 "1 0 9:9 / / rw - unknownfs /dev/none rw\n"
                 "2 1 250:1 / " +
                     escaped + " rw,relatime shared:1 - " + type + " " + source + " rw\n");
    roots = {.sys = (folder / "sys").string(), .mounts = (folder / "mounts").string()};
  }
  Storage storage() const { return storage_of((folder / "my data/clips").string(), roots); }
};

Storage made(const std::string& disk, const std::string& rotational, const std::string& type) {
  return MadeMachine(disk, rotational, type).storage();
}

FreeSpace little_space(const std::string&) { return {.available = 100 * mib}; }

}  // namespace

TEST(StorageKind, SsdAndHddAreToldApart) {
  EXPECT_EQ(made("nvme0n", "0", "ext4").describe(), "SSD `nvme0n`, ext4");
  EXPECT_EQ(made("sda", "1", "xfs").describe(), "HDD `sda`, xfs");
  const Check slow = check_storage_kind("data's disk", made("sda", "1", "xfs"));
  EXPECT_EQ(slow.verdict, Verdict::warn);
  EXPECT_TRUE(contains(slow.advice, "SSD"));
  EXPECT_EQ(check_storage_kind("x", made("sda", "0", "xfs")).verdict, Verdict::pass);
}

TEST(StorageKind, AVirtualDiskIsNotCalledRotating) {
  EXPECT_EQ(made("vda", "1", "ext4").describe(), "virtual disk `vda`, ext4");
  EXPECT_EQ(check_storage_kind("x", made("vda", "1", "ext4")).verdict, Verdict::pass);
}

TEST(StorageKind, WhatIsNoDiskIsSaidAsSuch) {
  EXPECT_EQ(made("sda", "1", "overlay").describe(), "a container's own layer (overlay)");
  EXPECT_EQ(made("sda", "1", "tmpfs").describe(), "memory (tmpfs)");
  EXPECT_EQ(made("sda", "1", "nfs4").describe(), "network or user-space file system (nfs4)");
  EXPECT_EQ(made("sda", "1", "fuse.sshfs").kind, Storage::Kind::network);
  EXPECT_EQ(made("sda", "", "ext4").describe(), "unknown, ext4");
  EXPECT_EQ(storage_of("/no/such/folder").kind, Storage::Kind::unknown);
}

TEST(StorageKind, ThisMachineSaysSomething) {
  EXPECT_FALSE(storage_of("/").file_system.empty());
  EXPECT_EQ(storage_of("/proc").file_system, "proc");
}

TEST(ColdReading, ReadsWhatItIsToldAndNoMore) {
  const TestFolder folder;
  std::vector<FileRange> files;
  for (int i = 0; i < 20; ++i)
    files.push_back({.path = folder.write("f" + std::to_string(i), std::string(mib, 'x'))});
  const ReadSpeed all = read_cold(files, {.most_seconds = 60});
  EXPECT_EQ(all.bytes, 20 * mib);
  EXPECT_EQ(all.files, 20);
  EXPECT_EQ(all.failed, 0);
  EXPECT_GT(all.bytes_per_second(), 0);
  const ReadSpeed some =
      read_cold(files, {.most_bytes = 2 * mib, .most_seconds = 60, .threads = 1});
  EXPECT_EQ(some.bytes, 2 * mib);
  const ReadSpeed parts =
      read_cold({{.path = files[0].path, .offset = 100, .bytes = 1000}}, {.most_seconds = 60});
  EXPECT_EQ(parts.bytes, 1000u);
}

TEST(ColdReading, FilesThatAreGoneFail) {
  const ReadSpeed speed = read_cold({{.path = "/no/such/a"}, {.path = "/no/such/b"}});
  EXPECT_EQ(speed.failed, 2);
  const Check check = check_read_speed(speed);
  EXPECT_EQ(check.verdict, Verdict::fail);
  EXPECT_EQ(check.found, "none of 2 files could be read");
}

TEST(ColdReading, ASlowDiskWarnsWithItsFigure) {
  const ReadSpeed slow{.bytes = 30'000'000, .files = 600, .seconds = 2};
  const Check check = check_read_speed(slow, 4000);
  EXPECT_EQ(check.verdict, Verdict::warn);
  EXPECT_EQ(check.found,
            "15 MB/s, 300 files/s cold (28.6 MiB of 600 files in 2.0s), 2000 times real time");
  EXPECT_TRUE(contains(check.advice, "under 50 MB/s"));
  EXPECT_EQ(check_read_speed({.bytes = 300'000'000, .files = 6, .seconds = 2}).verdict,
            Verdict::pass);
  EXPECT_TRUE(contains(
      check_read_speed({.bytes = 300'000'000, .files = 6, .seconds = 2, .cached = 4}).found,
      "; 4 of the files stayed in memory"));
}

TEST(ColdReading, AHandfulOfFilesIsNotJudged) {
  const Check check = check_read_speed({.bytes = 500'000, .files = 6, .seconds = 0.5});
  EXPECT_EQ(check.verdict, Verdict::pass);
  EXPECT_TRUE(check.found.ends_with("; too little to judge the disk by")) << check.found;
  EXPECT_EQ(check_read_speed({.bytes = 500'000, .files = 6, .seconds = 1}).verdict, Verdict::warn);
}

TEST(CheckpointRoom, NeedIsParametersTimesWhatIsKept) {
  const CheckpointNeed need{.parameters = 1000, .keep = 3};
  EXPECT_EQ(need.one(), 12000u);  // float32 weights and two moments
  EXPECT_EQ(need.all(), 60000u);  // three, the best, the one being written
  EXPECT_EQ((CheckpointNeed{.parameters = 1000, .average = true}.one()), 16000u);
}

TEST(CheckpointRoom, ANearlyFullDiskFailsWithWhatIsMissing) {
  const TestFolder folder;
  const CheckpointNeed need{.parameters = 10 * mib, .keep = 3};  // 600 MiB
  const Check check = check_checkpoint_space(folder.path().string(), need, little_space);
  EXPECT_EQ(check.verdict, Verdict::fail);
  EXPECT_EQ(check.found, "100.0 MiB free for `" + folder.path().string() +
                             "`; 5 checkpoints of 120.0 MiB need 600.0 MiB");
  EXPECT_EQ(check.advice,
            "free 500.0 MiB more, lower training.keep_checkpoints, or choose another disk with "
            "--checkpoint-dir");
  // What is there already is replaced as the run goes on.
  CheckpointNeed resumed = need;
  resumed.bytes_there = 560 * mib;
  EXPECT_EQ(check_checkpoint_space(folder.path().string(), resumed, little_space).verdict,
            Verdict::pass);
  resumed.bytes_there = 520 * mib;
  EXPECT_EQ(check_checkpoint_space(folder.path().string(), resumed, little_space).verdict,
            Verdict::warn);
}

TEST(CheckpointRoom, ADiskWithoutFreeEntriesFails) {
  const TestFolder folder;
  const Check check = check_checkpoint_space(
      folder.path().string(), {.parameters = 1},
      [](const std::string&) { return FreeSpace{.available = gib, .files = 7}; });
  EXPECT_EQ(check.verdict, Verdict::fail);
  EXPECT_TRUE(contains(check.found, ", room for 7 more files only"));
}

TEST(CheckpointRoom, AskTheNearestFolderThatIsThere) {
  const TestFolder folder;
  std::string asked;
  const auto ask = [&](const std::string& place) {
    asked = place;
    return FreeSpace{.available = gib};
  };
  const Check check =
      check_checkpoint_space((folder / "runs/a/b").string(), {.parameters = 1}, ask);
  EXPECT_EQ(check.verdict, Verdict::pass) << check.found;
  EXPECT_EQ(asked, folder.path().string());
  EXPECT_EQ(existing_folder(""), std::filesystem::current_path().string());
}

TEST(CheckpointRoom, CountsCheckpointsOnceThoughLinked) {
  const TestFolder folder;
  folder.write("step-1/model.safetensors", std::string(1000, 'x'));
  folder.write("step-2/model.safetensors", std::string(500, 'x'));
  folder.write("other/model.safetensors", std::string(100, 'x'));
  std::filesystem::create_directory_symlink("step-2", folder / "latest");
  EXPECT_EQ(checkpoint_bytes_in(folder.path().string()), 1500u);
  EXPECT_EQ(checkpoint_bytes_in("/no/such/run"), 0u);
}

// A real full disk, where mounting is allowed.
TEST(CheckpointRoom, ASmallFileSystemFails) {
  const TestFolder folder;
  const std::string place = folder.path().string();
  if (geteuid() != 0 || ::mount("none", place.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "no file system can be mounted here";
  const Check check = check_checkpoint_space(place, {.parameters = mib});
  const Storage storage = storage_of(place);
  ::umount2(place.c_str(), MNT_DETACH);
  EXPECT_EQ(check.verdict, Verdict::fail) << check.found;
  EXPECT_TRUE(check.found.starts_with("1.0 MiB free for ")) << check.found;
  EXPECT_EQ(storage.kind, Storage::Kind::memory);
}

TEST(CheckpointRoom, AFolderNobodyCanAskIsTold) {
  const Thrown thrown = thrown_by([] { free_space("/no/such/folder"); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_EQ(thrown.sentence,
            "cannot ask how much room `/no/such/folder` has: No such file or directory");
}

TEST(PinnedMemory, ALimitThatIsTooLowWarns) {
  const ChildEnd end = in_child([] {
    const rlimit limit{.rlim_cur = 65536, .rlim_max = 65536};
    setrlimit(RLIMIT_MEMLOCK, &limit);
    if (geteuid() == 0 && setuid(65534) != 0) return;  // the superuser has no limit
    const Check check = check_pinned_memory(1 << 20);
    std::printf("%s|%s|%s", to_string(check.verdict), check.found.c_str(), check.advice.c_str());
  });
  EXPECT_TRUE(end.out.starts_with("WARN|limit 64.0 KiB; locking 1.0 MiB on trial failed: "))
      << end.out;
  EXPECT_TRUE(contains(end.out, "ulimit -l unlimited"));
  EXPECT_TRUE(contains(check_pinned_memory(4096).found, "4.0 KiB were locked on trial"));
}

TEST(SharedMemory, MissingOrSmallWarns) {
  EXPECT_EQ(check_shared_memory("/no/such/shm").verdict, Verdict::warn);
  const Check none = check_shared_memory("/proc");  // holds 0 bytes on every machine
  EXPECT_EQ(none.verdict, Verdict::warn);
  EXPECT_EQ(none.found, "0 B free of 0 B in `/proc`");
  EXPECT_TRUE(contains(none.advice, "--shm-size=1g"));
}

}  // namespace tandem::tests
