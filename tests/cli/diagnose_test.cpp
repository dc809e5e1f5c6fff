#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/program.h"

namespace tandem {
namespace {

std::string diagnosed_text(const TestFolder& folder) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "a text to learn from ";
  return folder.write("book.txt", text);
}

// A run that waits for data 40 % of its time, its queues full: the queue is too short.
void write_waiting_run(const TestFolder& folder) {
  std::string metrics, timeline;
  for (int step = 1; step <= 60; ++step) {
    const std::string time = std::to_string(1790000000 + step);
    metrics += "{\"step\":" + std::to_string(step) +
               ",\"split\":\"train\",\"loss\":1.0,\"tokens_per_second\":100.0,\"wait_share\":0.4,"
               "\"time\":" +
               time + "}\n";
    timeline += "{\"time\":" + time +
                ",\"devices\":{\"/GPU:0\":{\"utilisation\":0.5,\"used\":1,\"limit\":100}},"
                "\"queues\":{\"loaded\":1.0,\"prepared\":0.95,\"moved\":0.95}}\n";
  }
  folder.write("config.yaml", "data:\n  buffer_size: 1\n");
  folder.write("metrics.jsonl", metrics);
  folder.write("timeline.jsonl", timeline);
}

}  // namespace

TEST(Diagnose, MeasuresATrainingAndGivesOneDocument) {
  const TestFolder folder;
  const ProgramRun run =
      run_program({"diagnose", "--data", diagnosed_text(folder), "--simulate-gpus", "1",
                   "--batch-size", "2", "--num-batches", "12", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  for (const char* key : {"verdict", "evidence", "command", "expected_gain"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_FALSE(json["evidence"].empty());
  EXPECT_GT(json["figures"]["replay_step"]["median"].get<double>(), 0);
  EXPECT_GT(json["figures"]["fed_step"]["median"].get<double>(), 0);
  EXPECT_EQ(json["figures"]["queues"].size(), 3U);
  EXPECT_TRUE(json["figures"]["devices"].contains("/GPU:0"));
}

TEST(Diagnose, PrintsTheVerdictLine) {
  const TestFolder folder;
  const ProgramRun run = run_program(
      {"diagnose", "--data", diagnosed_text(folder), "--batch-size", "2", "--num-batches", "10"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("\nVerdict: "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("\nHeadspace "), std::string::npos) << run.out;
}

TEST(Diagnose, ASlowReplicaIsNamedAndLeavingItOutHelps) {
  const TestFolder folder;
  const ProgramRun run =
      run_program({"diagnose", "--data", diagnosed_text(folder), "--simulate-gpus", "3",
                   "--multi-gpu", "--batch-size", "3", "--num-batches", "10", "--json", "--apply"},
                  {{"TANDEM_SIMULATE_SLOWNESS", "1,1,5"}});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["verdict"], "slow-device") << run.out;
  EXPECT_EQ(json["settings"], nlohmann::json::array({"training.visible_gpus=0,1"}));
  EXPECT_NE(json["command"].get<std::string>().find("training.visible_gpus=0,1"),
            std::string::npos);
  EXPECT_TRUE(json["applied"]["improved"].get<bool>()) << run.out;
}

TEST(Diagnose, JudgesARunByItsRecord) {
  const TestFolder folder;
  write_waiting_run(folder);
  const ProgramRun run = run_program({"diagnose", "--run", folder.path().string(), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["verdict"], "queue-too-small");
  EXPECT_NEAR(json["expected_gain"].get<double>(), 0.4, 0.01);
  EXPECT_EQ(json["command"],
            "tandem train --config " + (folder / "config.yaml").string() + " data.buffer_size=50");
  const ProgramRun text = run_program({"diagnose", "--run", folder.path().string()});
  EXPECT_NE(text.out.find("Verdict: queue-too-small\n"), std::string::npos) << text.out;
}

TEST(Diagnose, CtrlCEndsItAndLeavesNoMadeClips) {
  const TestFolder folder;
  Program diagnosed({"diagnose", "--simulate-gpus", "1", "--batch-size", "2", "--num-batches",
                     "1000000", "--quiet", "paths.data_dir=none"},
                    {{"TMPDIR", folder.path().string()}});
  const auto made = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      if (std::filesystem::exists(entry.path() / "metadata.csv")) return true;
    return false;
  };
  for (int i = 0; i < 1000 && !made(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(made());
  // Signals are caught before anything is made.
  diagnosed.signal(SIGINT);
  EXPECT_EQ(diagnosed.wait().code, 130);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Diagnose, WrongUsageSaysWhatWasExpected) {
  const TestFolder folder;
  write_waiting_run(folder);
  const ProgramRun both = run_program({"diagnose", "--run", folder.path().string(), "--apply"});
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("--apply measures again"), std::string::npos) << both.err;
  const ProgramRun few = run_program({"diagnose", "--num-batches", "3"});
  EXPECT_EQ(few.code, 2);
  EXPECT_NE(few.err.find("expected 10 or more"), std::string::npos) << few.err;
  EXPECT_EQ(run_program({"diagnose", "--run", (folder / "none").string()}).code, 1);
  EXPECT_EQ(run_program({"diagnose", "--data", (folder / "none").string()}).code, 4);
}

}  // namespace tandem
