// Real runs of the program: progress lines, resume, signals, faults, logs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "support/byte_training.h"
#include "support/program.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

const std::vector<std::string> two_gpus = {"--simulate-gpus", "2", "--data-gpu", "0",
                                           "--model-gpu",     "1"};

std::vector<nlohmann::json> metrics_of(const std::filesystem::path& run) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(TrainProgram, WarmsUpTrainsAndResumes) {
  TestFolder folder;
  const ProgramRun first = run_program(byte_training(folder / "run", "20", two_gpus));
  ASSERT_EQ(first.code, 0) << first.err;
  const auto waiting =
      first.out.find("🕐 Multi-GPU Mode: Waiting up to 2.0s for data pipeline to warm up...\n");
  const auto starting = first.out.find("✅ Model training starting now (");
  ASSERT_NE(waiting, std::string::npos);
  EXPECT_LT(waiting, starting);
  EXPECT_NE(first.out.find("batches ready after ", starting), std::string::npos);
  EXPECT_NE(first.out.find("step 20/20  loss "), std::string::npos);

  const ProgramRun second = run_program(byte_training(folder / "run", "30", two_gpus));
  EXPECT_EQ(second.code, 0);
  EXPECT_NE(second.out.find("goes on after step 20"), std::string::npos);
  int64_t train_lines = 0;
  for (const auto& line : metrics_of(folder / "run")) {
    if (line["split"] != "train") continue;
    EXPECT_EQ(line["step"], ++train_lines);
  }
  EXPECT_EQ(train_lines, 30);
  for (const char* name : {"config.yaml", "metrics.jsonl", "latest", "best", "step-30"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / name)) << name;
  }
}

// A run that was stopped in its last validation.
TEST(TrainProgram, ShowsWhatItMakesUpFor) {
  TestFolder folder;
  const auto command = byte_training(folder / "run", "4", {"--simulate-gpus", "1"});
  ASSERT_EQ(run_program(command).code, 0);
  const auto metrics = folder / "run" / "metrics.jsonl", state = folder / "run/latest/state.json";
  const auto validations = [&] {
    return std::ranges::count_if(metrics_of(folder / "run"),
                                 [](const auto& line) { return line["split"] == "val"; });
  };
  ASSERT_EQ(validations(), 1);
  std::string kept;
  for (const std::string& line : split(read_file(metrics), '\n'))
    if (!line.empty() && line.find("\"val\"") == std::string::npos) kept += line + "\n";
  write_file_atomically(metrics, kept);
  std::string text = std::regex_replace(read_file(state), std::regex("\"owes_checks\": false"),
                                        "\"owes_checks\": true");
  text = std::regex_replace(text, std::regex("\"finished\": true"), "\"finished\": false");
  write_file_atomically(state, text);
  const ProgramRun again = run_program(command);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(validations(), 1);
  EXPECT_NE(again.out.find("done: what was left to do behind the last step, validation "),
            std::string::npos)
      << again.out;
  const std::string now = read_file(state);
  EXPECT_NE(now.find("\"finished\": true"), std::string::npos) << now;
  EXPECT_EQ(now.find("\"last_loss\": 0.0"), std::string::npos) << now;
  EXPECT_EQ(run_program(command).out.find("done: "), std::string::npos) << "nothing is left";
}

TEST(TrainProgram, SaysAtTheStartWhatItWillDo) {
  TestFolder folder;
  const ProgramRun run = run_program(byte_training(folder / "run", "2", {"--simulate-gpus", "1"}));
  ASSERT_EQ(run.code, 0) << run.err;
  size_t place = 0;
  for (const char* part :
       {"optimization level `basic`", "\n  training.max_steps  ", "  --max-steps\n",
        "\n  parameters           120576\n", "\n  memory, each model   weights ",
        "\n  steps an epoch       ", "step 1/2  "}) {
    const size_t found = run.out.find(part, place);
    ASSERT_NE(found, std::string::npos) << part << " in " << run.out;
    place = found;
  }
}

// Starts a long run, waits for its first steps, sends the signals, and returns how it ended.
ProgramRun stopped_by(const std::filesystem::path& run, const std::vector<int>& signals) {
  Program program(byte_training(run, "1000000", {"--simulate-gpus", "1", "observe.log_step=1"}));
  for (int i = 0; i < 600 && program.read("out").find("step 3/") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (int signal : signals) program.signal(signal);
  return program.wait();
}

TEST(TrainProgram, SavesAndExitsOnSignals) {
  struct Case {
    int signal, code;
    std::string word;
  };
  for (const Case& wanted : {Case{SIGINT, 130, "interrupted"}, Case{SIGTERM, 143, "terminated"},
                             Case{SIGUSR1, 143, "terminated"}}) {
    TestFolder folder;
    const ProgramRun run = stopped_by(folder / "run", {wanted.signal});
    EXPECT_EQ(run.code, wanted.code);
    EXPECT_NE(run.err.find("error: " + wanted.word + " after step "), std::string::npos) << run.err;
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / "latest" / "state.json"));
  }
}

TEST(TrainProgram, ReportsAVanishedRankAndExitsSeven) {
  TestFolder folder;
  const ProgramRun run = run_program(
      byte_training(folder / "run", "20",
                    {"--simulate-gpus", "4", "--multi-gpu", "training.collective_timeout=1"}),
      {{"TANDEM_FAULT", "vanish:rank=2,step=5"}});
  EXPECT_EQ(run.code, 7);
  EXPECT_NE(run.err.find("rank 2 of 4 did not arrive (arrived: 0, 1, 3)"), std::string::npos)
      << run.err;
}

TEST(TrainProgram, ExitsFiveOverAMemoryLimit) {
  TestFolder folder;
  std::vector<std::string> more = two_gpus;
  more.insert(more.end(), {"--enable-memory-isolation", "--model-gpu-memory", "2"});
  const ProgramRun run = run_program(byte_training(folder / "run", "20", more));
  EXPECT_EQ(run.code, 5);
  EXPECT_NE(run.err.find("error: /GPU:1 is out of memory: "), std::string::npos) << run.err;
}

TEST(TrainProgram, ExitsThreeFourAndSixForDataFilesAndNumbers) {
  TestFolder folder;
  const auto code_of = [&](const std::string& data, const Program::Variables& variables = {}) {
    return run_program({"train", "--simulate-gpus", "1", "--train-data", data, "--max-steps", "5",
                        "--checkpoint-dir", (folder / "run").string(), "training.max_bad_steps=2"},
                       variables)
        .code;
  };
  EXPECT_EQ(code_of(folder.write("short.txt", "too short")), 3);
  EXPECT_EQ(code_of((folder / "missing.txt").string()), 4);
  EXPECT_EQ(
      code_of(TANDEM_SOURCE_DIR "/LICENSE", {{"TANDEM_FAULT", "nan:rank=0,step=2,steps=100"}}), 6);
}

TEST(TrainProgram, LogsToAFileAndAsJson) {
  TestFolder folder;
  const std::string log = (folder / "log.txt").string();
  const ProgramRun run = run_program(byte_training(
      folder / "run", "3", {"--simulate-gpus", "1", "--json-log", "--log-file", log}));
  ASSERT_EQ(run.code, 0);
  std::istringstream lines(run.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto object = nlohmann::json::parse(line);
    EXPECT_TRUE(object.contains("time") && object.contains("level") && object.contains("message"));
  }
  EXPECT_GT(count, 5);
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  EXPECT_NE(text.str().find("Single-GPU Buffered Mode"), std::string::npos);
  const ProgramRun quiet =
      run_program(byte_training(folder / "run2", "3", {"--simulate-gpus", "1", "-q"}));
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.out, "");
}

}  // namespace
// Memory that was only just taken may hold anything: no number of the training is in it yet.
TEST(TrainProgram, EagerDebuggingFindsNothingWrongWithAHealthyVoice) {
  const TestFolder folder;
  const ProgramRun run =
      run_program({"train", "--stage", "dvae", "--model-size", "tiny", "--train-data",
                   TANDEM_SOURCE_DIR "/assets/demo", "--checkpoint-dir", (folder / "run").string(),
                   "--max-steps", "2", "--batch-size", "2", "--simulate-gpus", "1",
                   "training.enable_eager_debug=true", "observe.sample_count=0"});
  EXPECT_EQ(run.code, 0) << run.err;
}

}  // namespace tandem
