#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace tandem {
namespace {

const std::string demo = TANDEM_SOURCE_DIR "/assets/demo";

// The demo corpus, prepared outside the repository.
std::string demo_index(const TestFolder& folder) {
  const std::string out = (folder / "demo.index").string();
  EXPECT_EQ(run_program({"prepare", demo, "--language", "en", "--out", out, "--quick"}).code, 0);
  return out;
}

}  // namespace

TEST(Bench, DataGivesItsFiguresAsOneJsonDocument) {
  const TestFolder folder;
  const ProgramRun run =
      run_program({"bench", "data", "--data", demo_index(folder), "--seconds", "0.2", "--format",
                   "json", "--num-workers", "2", "--step-ms", "5"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("✅ SUCCESS: Using native data loading (GPU-optimized)\n"),
            std::string::npos);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_GT(json["clips_per_second"].get<double>(), 0);
  EXPECT_TRUE(json["peer_clips_per_second"].is_null());
  EXPECT_TRUE(json["ratio"].is_null());
  for (const char* stage : {"decode", "tokenize", "resample", "mel"})
    EXPECT_GT(json["stages"][stage]["clips_per_second"].get<double>(), 0) << stage;
  EXPECT_GE(json["steps"]["replay_step"].get<double>(), 0.005);
  EXPECT_GE(json["steps"]["fed_step"].get<double>(), 0.005);
  for (const char* queue : {"loaded", "prepared", "moved"})
    EXPECT_GT(json["queues"][queue]["batches"].get<int>(), 0) << queue;
}

TEST(Bench, APeerIsRunAndTheRatioGiven) {
  const TestFolder folder;
  const std::string peer =
      folder.write("python",
                   "#!/bin/sh\necho '{\"peer\": \"made up\", \"clips_per_second\": 0.5, "
                   "\"stage_clips_per_second\": {\"mel\": 2, \"resample\": null}}'\n");
  std::filesystem::permissions(peer, std::filesystem::perms::owner_all);
  const std::string index = demo_index(folder);
  const Program::Variables with_peer{{"TANDEM_REFERENCE_PYTHON", peer}};
  const ProgramRun run = run_program(
      {"bench", "data", "--data", index, "--seconds", "0.2", "--format", "json", "--peer"},
      with_peer);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["peer_clips_per_second"], 0.5);
  EXPECT_DOUBLE_EQ(json["ratio"].get<double>(), json["clips_per_second"].get<double>() / 0.5);
  EXPECT_EQ(json["stages"]["mel"]["peer_clips_per_second"], 2);

  folder.write("python", "#!/bin/sh\nexit 9\n");
  const ProgramRun failed =
      run_program({"bench", "data", "--data", index, "--seconds", "0.1", "--peer"}, with_peer);
  EXPECT_EQ(failed.code, 4);
  EXPECT_NE(failed.err.find("ended with 9"), std::string::npos) << failed.err;
}

TEST(Bench, WrongUsageSaysWhatWasExpected) {
  EXPECT_EQ(run_program({"bench", "--list"}).code, 0);
  EXPECT_EQ(run_program({"bench"}).code, 2);
  EXPECT_EQ(run_program({"bench", "nothing"}).code, 2);
  EXPECT_EQ(run_program({"bench", "data"}).code, 2);
  EXPECT_EQ(run_program({"bench", "data", "--data", demo, "--format", "xml"}).code, 2);
  EXPECT_EQ(run_program({"bench", "data", "--data", demo, "--seconds", "-1"}).code, 2);
  EXPECT_EQ(run_program({"bench", "data", "--data", "/no/such/folder"}).code, 4);
}

}  // namespace tandem
