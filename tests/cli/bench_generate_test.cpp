#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace tandem {

TEST(BenchGenerate, GivesItsFiguresBesideThePeersAsOneJsonDocument) {
  const TestFolder folder;
  const std::string peer =
      folder.write("python",
                   "#!/bin/sh\necho '{\"peer\": \"made up\", \"steps\": 6, \"batches\": {\"2\": "
                   "{\"ms_per_step\": 1000}}}'\n");
  std::filesystem::permissions(peer, std::filesystem::perms::owner_all);
  const ProgramRun run =
      run_program({"bench", "generate", "--size", "tiny", "--batches", "1,2", "--steps", "6",
                   "--precision", "fp32", "--whole", "--peer", "--format", "json"},
                  {{"TANDEM_REFERENCE_PYTHON", peer}});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const auto& two = json["sizes"]["tiny"]["2"];
  EXPECT_DOUBLE_EQ(json["tandem"].get<double>(), two["clips_per_second"].get<double>());
  EXPECT_DOUBLE_EQ(json["peer"].get<double>(), 2.0 / 6);
  EXPECT_NEAR(json["ratio"].get<double>(), 1000 / two["ms_per_step"].get<double>(), 1e-6);
  EXPECT_GT(json["floor"].get<double>(), json["tandem"].get<double>());
  EXPECT_GT(two["whole_over_decode"].get<double>(), 0);
  EXPECT_TRUE(json["sizes"]["tiny"]["1"]["peer_ms_per_step"].is_null());
}

TEST(BenchGenerate, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](const std::vector<std::string>& words) {
    std::vector<std::string> all{"bench", "generate"};
    all.insert(all.end(), words.begin(), words.end());
    const ProgramRun run = run_program(all);
    return std::to_string(run.code) + " " + run.err;
  };
  EXPECT_NE(refusal({"--size", "huge"}).find("huge"), std::string::npos);
  EXPECT_EQ(refusal({"--size", "huge"}).front(), '1');
  EXPECT_NE(refusal({"--size", "tiny", "--kv", "int4"}).find("expected same or int8"),
            std::string::npos);
  EXPECT_EQ(refusal({"--size", "tiny", "--kv", "int4"}).front(), '2');
  EXPECT_NE(refusal({"--size", "tiny", "--batches", "0"}).find("--batches is `0`"),
            std::string::npos);
  EXPECT_NE(refusal({"--size", "tiny", "--format", "xml"}).find("md, csv or json"),
            std::string::npos);
}

}  // namespace tandem
