// `tandem generate` killed at any moment, and in shards at once: at the end the folder holds what
// an undisturbed run leaves. TANDEM_KILLS=50 (make soak) for long.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "support/program.h"
#include "support/tiny_musicgen.h"
#include "util/atomic_file.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

class GenerateKilled : public testing::Test {
 protected:
  std::vector<std::string> words(const std::string& run,
                                 const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"generate",
                                    "--simulate-gpus",
                                    "2",
                                    "--model",
                                    tiny_musicgen_folder(),
                                    "--captions",
                                    captions,
                                    "-o",
                                    (folder / run).string(),
                                    "--batch-size",
                                    "8",
                                    "data.text_column=text",
                                    "generation.max_new_tokens=8"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Clips, manifest and metadata; not what tells of times.
  std::map<std::string, std::string> outcome(const std::string& run) {
    std::map<std::string, std::string> files;
    for (const char* name : {"manifest.jsonl", "metadata.csv"}) {
      if (std::filesystem::exists(folder / run / name))
        files[name] = read_file(folder / run / name);
    }
    const auto sounds = folder / run / "audio_samples";
    if (!std::filesystem::exists(sounds)) return files;
    for (const auto& entry : std::filesystem::directory_iterator(sounds)) {
      files[entry.path().filename().string()] = read_file(entry.path());
    }
    return files;
  }

  // Clips there while the program runs; nothing is opened.
  size_t clips_in(const std::string& run) {
    size_t count = 0;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder / run / "audio_samples", ignored)) {
      count += !entry.path().filename().string().starts_with(".");
    }
    return count;
  }

  void write_captions(int count) {
    std::string table = "id,text\n";
    for (int i = 0; i < count; ++i) {
      // Ids come twice.
      table += "take" + std::to_string(i / 2) + ",\"piano, number " + std::to_string(i) + "\"\n";
    }
    captions = folder.write("captions.csv", table);
  }

  TestFolder folder;
  std::string captions;
};

using GenerateKilledSoak = GenerateKilled;

TEST_F(GenerateKilledSoak, EndsWithExactlyTheClipsOfAnUndisturbedRun) {
  constexpr size_t clips = 200;
  write_captions(clips);
  const ProgramRun whole = run_program(words("whole"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto expected = outcome("whole");
  ASSERT_EQ(expected.size(), clips + 2);
  const char* asked = std::getenv("TANDEM_KILLS");
  const int kills = asked ? std::atoi(asked) : 4;
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    Program program(words("killed"));
    const auto count = [&] { return clips_in("killed"); };
    // Mostly once it has made something new, at any moment of what follows; now and then while it
    // starts.
    const size_t before = count();
    for (int k = 0; k < 3000 && i % 4 != 3 && count() <= before && before < clips; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(
        counted_below(i % 4 == 3 ? 800 : 200, 1, "kill", static_cast<uint64_t>(i), 0)));
    program.signal(SIGKILL);
    killed += program.wait().code == 128 + SIGKILL;
    for (const auto& [name, bytes] : outcome("killed")) {
      if (!name.ends_with(".wav") || name.starts_with(".draft-")) continue;
      EXPECT_TRUE(bytes == expected.at(name)) << name << " is half or another clip";
    }
    // Done before all kills are spent: once more from nothing.
    if (std::filesystem::exists(folder / "killed/manifest.jsonl")) remove_tree(folder / "killed");
  }
  EXPECT_GT(killed, kills / 2);
  const ProgramRun last = run_program(words("killed"));
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_TRUE(outcome("killed") == expected);
}

TEST_F(GenerateKilled, ShardsAtOnceMakeTheFolderOfOneRun) {
  write_captions(18);
  ASSERT_EQ(run_program(words("whole")).code, 0);
  {
    Program first(words("shards", {"--shard", "0/3"})), second(words("shards", {"--shard", "1/3"})),
        third(words("shards", {"--shard", "2/3"}));
    for (Program* program : {&first, &second, &third}) {
      const ProgramRun run = program->wait();
      EXPECT_EQ(run.code, 0) << run.err;
    }
  }
  EXPECT_EQ(outcome("whole").size(), 20);
  EXPECT_TRUE(outcome("shards") == outcome("whole"));
}

TEST_F(GenerateKilled, CtrlCKeepsWhatIsDone) {
  write_captions(200);
  Program program(words("run"));
  for (int k = 0; k < 3000 && clips_in("run") < 3; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  program.signal(SIGINT);
  const ProgramRun stopped = program.wait();
  ASSERT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("of 200 clips"), std::string::npos) << stopped.err;
  const auto kept = outcome("run");
  EXPECT_LT(kept.size(), 202);
  for (const auto& [name, bytes] : kept) EXPECT_FALSE(name.starts_with(".draft-")) << name;
  ASSERT_EQ(run_program(words("run")).code, 0);
  const auto all = outcome("run");
  EXPECT_EQ(all.size(), 202);
  for (const auto& [name, bytes] : kept) {
    EXPECT_TRUE(!name.ends_with(".wav") || all.at(name) == bytes) << name;
  }
}

}  // namespace
}  // namespace tandem
