// Jobs as processes: several shards at once, and one that is killed at any moment. TANDEM_KILLS=50
// (make soak) for long.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "device/simulated.h"
#include "generate/fake_music.h"
#include "generate/music_jobs.h"
#include "generate/music_manifest.h"
#include "support/temporary_folder.h"
#include "util/text.h"

namespace tandem {
namespace {

struct ChildJob {
  std::filesystem::path folder;
  int clips = 0, devices = 2;
  int64_t shard = 0, shards = 1;
  std::filesystem::path made = {};  // where it lists the clips it made
};

// In a process of its own; the parent starts no thread before.
pid_t start_job(const ChildJob& job) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 1;
  try {
    FakeMusicRecord record;
    record.batch_time = std::chrono::milliseconds(1);
    MusicPool pool = fake_music_pool(simulate_devices(job.devices), record);
    MusicJobOptions options;
    options.folder = job.folder.string();
    options.batch_size = 8;
    options.shard = job.shard;
    options.shards = job.shards;
    options.writers = 3;
    generate_clips(pool, numbered_captions(job.clips), options);
    std::string made;
    for (const auto& [seed, times] : record.made) {
      for (int i = 0; i < times; ++i) made += std::to_string(seed) + "\n";
    }
    if (!job.made.empty()) write_file_atomically(job.made, made);
    code = 0;
  } catch (const std::exception& error) {
    fprintf(stderr, "%s\n", error.what());
  }
  _exit(code);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(MusicShards, AsProcessesAtOnceMakeEveryClipOnceAndOneMergesThem) {
  const TestFolder folder;
  constexpr int clips = 60;
  ASSERT_EQ(wait_for(start_job({.folder = folder / "one", .clips = clips})), 0);
  const auto expected = files_below(folder / "one");
  ASSERT_EQ(expected.size(), clips + 2);
  std::vector<pid_t> children;
  constexpr int64_t shards = 3;
  for (int64_t shard = 0; shard < shards; ++shard) {
    children.push_back(start_job({.folder = folder / "three",
                                  .clips = clips,
                                  .devices = static_cast<int>(shard) + 1,
                                  .shard = shard,
                                  .shards = shards,
                                  .made = folder / ("made" + std::to_string(shard))}));
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(files_below(folder / "three"), expected);
  std::multiset<std::string> made;
  for (int64_t shard = 0; shard < shards; ++shard) {
    const auto lines = split(read_file(folder / ("made" + std::to_string(shard))), '\n');
    EXPECT_EQ(lines.size(), clips / shards + 1);
    for (const std::string& line : lines) {
      if (!line.empty()) made.insert(line);
    }
  }
  EXPECT_EQ(made.size(), clips);
  EXPECT_EQ(std::set<std::string>(made.begin(), made.end()).size(), clips);
}

// What stands under a clip's name is the whole clip.
void expect_no_half_clips(const std::filesystem::path& run,
                          const std::map<std::string, std::string>& expected) {
  if (!std::filesystem::exists(run / "audio_samples")) return;
  for (const auto& [name, bytes] : files_below(run / "audio_samples")) {
    if (name.starts_with(".draft-")) continue;
    EXPECT_TRUE(bytes == expected.at("audio_samples/" + name)) << name;
  }
}

TEST(MusicKilledSoak, EndsWithExactlyTheClipsOfAnUndisturbedRun) {
  const TestFolder folder;
  constexpr int clips = 200;
  ASSERT_EQ(wait_for(start_job({.folder = folder / "whole", .clips = clips})), 0);
  const auto expected = files_below(folder / "whole");
  ASSERT_EQ(expected.size(), clips + 2);
  const char* asked = std::getenv("TANDEM_KILLS");
  const int kills = asked ? std::atoi(asked) : 8;
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    const pid_t child =
        start_job({.folder = folder / "killed", .clips = clips, .devices = 1 + i % 3});
    const auto draw = counted_below(80, 1, "kill", static_cast<uint64_t>(i), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(draw));
    kill(child, SIGKILL);
    killed += wait_for(child) == 128 + SIGKILL;
    expect_no_half_clips(folder / "killed", expected);
    // Done before all kills are spent: once more from nothing.
    if (std::filesystem::exists(folder / "killed/manifest.jsonl")) remove_tree(folder / "killed");
  }
  EXPECT_GT(killed, kills / 2);
  ASSERT_EQ(wait_for(start_job({.folder = folder / "killed", .clips = clips})), 0);
  EXPECT_EQ(files_below(folder / "killed"), expected) << "no draft, no part, no other byte";
}

TEST(MusicKilledSoak, ShardsThatAreKilledGoOnAndLeaveTheDraftsOfOthersAlone) {
  const TestFolder folder;
  constexpr int clips = 40;
  const std::string own = folder.write("run/audio_samples/.draft-77-clip1.wav", "half");
  const std::string others = folder.write("run/audio_samples/.draft-78-clip0.wav", "being written");
  const auto job = [&](int64_t shard) {
    return ChildJob{.folder = folder / "run", .clips = clips, .shard = shard, .shards = 2};
  };
  const pid_t child = start_job(job(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  kill(child, SIGKILL);
  wait_for(child);
  ASSERT_EQ(wait_for(start_job(job(1))), 0);
  EXPECT_FALSE(std::filesystem::exists(own));
  EXPECT_TRUE(std::filesystem::exists(others));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/manifest.jsonl")) << "shard 0 is missing";
  ASSERT_EQ(wait_for(start_job(job(0))), 0);
  ASSERT_EQ(wait_for(start_job({.folder = folder / "whole", .clips = clips})), 0);
  EXPECT_EQ(files_below(folder / "run"), files_below(folder / "whole"));
}

}  // namespace
}  // namespace tandem
