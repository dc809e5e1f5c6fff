#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace tandem {
namespace {

std::vector<std::string> profile_words(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"profile",
                                    "--train-data",
                                    TANDEM_SOURCE_DIR "/LICENSE",
                                    "--model-size",
                                    "tiny",
                                    "--batch-size",
                                    "8",
                                    "--num-steps",
                                    "4",
                                    "--traced-steps",
                                    "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

nlohmann::json json_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

}  // namespace

TEST(ProfileProgram, PrintsOneDocumentAndWritesTraceAndReport) {
  const TestFolder folder;
  const ProgramRun run =
      run_program(profile_words({"--json", "--simulate-gpus", "2", "--data-gpu", "0", "--model-gpu",
                                 "1", "--no-cost", "--trace", (folder / "p.json").string()}));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto document = nlohmann::json::parse(run.out);
  const auto& replica = document["replicas"][0];
  EXPECT_EQ(document["stage"], "bytes");
  EXPECT_EQ(replica["device"], "/GPU:1");
  EXPECT_EQ(replica["steps"], 4);
  EXPECT_GT(replica["accounted"].get<double>(), 0.5);
  EXPECT_TRUE(document["cost"].is_null());
  EXPECT_GT(replica["limits"]["flops_per_second"].get<double>(), 0);
  const auto trace = json_of(folder / "p.json");
  int64_t slices = 0;
  for (const auto& event : trace["traceEvents"]) slices += event["ph"] == "X";
  EXPECT_EQ(slices, trace["otherData"]["slices"].get<int64_t>());
  EXPECT_EQ(trace["otherData"]["steps"], 4 + 2);
  EXPECT_TRUE(std::filesystem::exists(folder / "p.html"));
  EXPECT_NE(run.err.find("p.json"), std::string::npos);
}

TEST(ProfileProgram, PrintsTablesForPeople) {
  const ProgramRun run = run_program(profile_words({"--simulate-gpus", "1"}));
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* words :
       {"wait for data", "optimizer", "aten::", "weights", "of limit", "the profiling itself: "})
    EXPECT_NE(run.out.find(words), std::string::npos) << words << "\n" << run.out;
}

TEST(ProfileProgram, WrongUsageSaysWhatWasExpected) {
  const ProgramRun none = run_program(profile_words({"--num-steps", "0"}));
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("--num-steps is 0; expected 1 to 100000"), std::string::npos) << none.err;
  const ProgramRun all = run_program(profile_words({"--stage", "all"}));
  EXPECT_EQ(all.code, 2);
  EXPECT_NE(all.err.find("--stage dvae, --stage gpt or --stage decoder"), std::string::npos)
      << all.err;
  const ProgramRun nowhere = run_program(profile_words({"--trace", "/no/such/folder/p.json"}));
  EXPECT_EQ(nowhere.code, 4);
  EXPECT_NE(nowhere.err.find("there is no folder `/no/such/folder`"), std::string::npos)
      << nowhere.err;
  const ProgramRun what = run_program(profile_words({"--for", "fun"}));
  EXPECT_EQ(what.code, 2);
  EXPECT_NE(what.err.find("--for is `fun`; expected train or generate"), std::string::npos)
      << what.err;
  const ProgramRun model =
      run_program({"profile", "--for", "generate", "--model", "/no/such", "--simulate-gpus", "1"});
  EXPECT_EQ(model.code, 4);
  EXPECT_NE(model.err.find("there is no model folder `/no/such`"), std::string::npos) << model.err;
}

TEST(ProfileProgram, WithoutDataTakesMadeClipsAndSaysSo) {
  const TestFolder folder;
  const ProgramRun run =
      run_program({"profile", "--simulate-gpus", "1", "--model-size", "tiny", "--batch-size", "2",
                   "--num-steps", "1", "--traced-steps", "1", "--no-cost", "--json",
                   "paths.data_dir=" + (folder / "none").string()});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("no data was given: steps of stage dvae are made of 64 made clips"),
            std::string::npos)
      << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["stage"], "dvae");
}

TEST(ProfileProgram, ProfilesGenerating) {
  const TestFolder folder;
  const std::string captions =
      folder.write("captions.csv", "id,caption\na,calm piano\nb,loud drums\nc,a flute\n");
  const std::vector<std::string> words = {"profile",
                                          "--model",
                                          TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/tiny",
                                          "--seconds",
                                          "0.3",
                                          "--num-steps",
                                          "2",
                                          "--json",
                                          "--no-cost",
                                          "--simulate-gpus",
                                          "2"};
  auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
  };
  // Captions alone mean generating.
  const ProgramRun run =
      with({"--captions", captions, "--batch-size", "4", "--trace", (folder / "g.json").string()});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto document = nlohmann::json::parse(run.out);
  EXPECT_EQ(document["for"], "generate");
  EXPECT_EQ(document["rows"], 4);
  ASSERT_EQ(document["replicas"].size(), 2U);
  EXPECT_EQ(document["replicas"][0]["batch"]["clips"], 2);
  EXPECT_GT(document["replicas"][0]["accounted"].get<double>(), 0.5);
  const auto trace = json_of(folder / "g.json");
  int64_t slices = 0;
  for (const auto& event : trace["traceEvents"]) slices += event["ph"] == "X";
  EXPECT_EQ(slices, trace["otherData"]["slices"].get<int64_t>());
  EXPECT_TRUE(std::filesystem::exists(folder / "g.html"));
  // Without any, one is made up.
  const ProgramRun made = with({"--for", "generate"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.err.find("no captions were given"), std::string::npos) << made.err;
}

}  // namespace tandem
