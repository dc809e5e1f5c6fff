#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace tandem {
namespace {

const std::string demo = TANDEM_SOURCE_DIR "/assets/demo";

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

nlohmann::json document_in(const std::string& file) {
  return nlohmann::json::parse(std::ifstream(file));
}

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
  EXPECT_EQ(run_program({"bench"}).code, 2);
  EXPECT_EQ(run_program({"bench", "nothing"}).code, 2);
  EXPECT_EQ(run_program({"bench", "data"}).code, 2);
  EXPECT_EQ(run_program({"bench", "data", "--data", demo, "--format", "xml"}).code, 2);
  EXPECT_EQ(run_program({"bench", "data", "--data", demo, "--seconds", "-1"}).code, 2);
  EXPECT_EQ(run_program({"bench", "data", "--data", "/no/such/folder"}).code, 4);
}

TEST(Bench, ListNamesEveryBenchmarkWithItsOptions) {
  const ProgramRun run = run_program({"bench", "--list"});
  EXPECT_EQ(run.code, 0);
  for (const char* line : {"data        decode", "step        the feed", "train       a step",
                           "synthesize  XTTS", "generate    MusicGen"})
    EXPECT_TRUE(says(run.out, line)) << run.out;
}

TEST(Bench, RefusesValuesAndOptionsThatCannotBe) {
  const auto refused = [](std::vector<std::string> words, const std::string& sentence) {
    words.insert(words.begin(), "bench");
    words.push_back("--dry-run");
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.code, 2) << words[1];
    EXPECT_TRUE(says(run.err, sentence)) << run.err;
  };
  refused({"trian"}, "there is no benchmark `trian`. Did you mean `train`?");
  refused({"data", "--data", demo, "--codes", "5"},
          "`tandem bench data` has no option `--codes`, which belongs to synthesize");
  refused({"train", "batch_size=8,16"},
          "`tandem bench train` does not read the setting `batch_size`");
  refused({"train", "--batches", "8,x"}, "--batches is `x`; expected whole numbers from 1 to 4096");
  refused({"train", "--precision", "int4"},
          "--precision is `int4`; expected fp32, tf32, bf16 or fp16");
  refused({"train", "--size", "tiny", "--peer"}, "--peer runs rows of 632 places, and these have");
  refused({"train", "--places", "8"}, "--places is 8; a row has 64 at least");
  refused({"synthesize", "--precision", "bf16,int4"}, "the precision is `int4`; expected auto");
  refused({"data", "--data", demo, "batch_size=8,,16"},
          "batch_size is `8,,16`; expected values between its commas");
  refused({"data", "--data", demo, "multi_gpu=true,false"},
          "devices are chosen once a run and cannot change between its combinations");
  refused({"data", "--data", demo, "--repeat", "0"}, "--repeat is `0`; expected whole numbers");
  refused({"data", "--data", demo, "--warm-up", "-1"},
          "--warm-up is `-1`; expected a whole number");
  refused({"data", "--data", demo, "--out", "today.txt"},
          "--out is `today.txt`; expected a name that ends in .md, .csv or .json");
  refused({"generate", "--kv", "int3"}, "--kv is `int3`; expected same or int8");
}

TEST(Bench, SeveralValuesOfAnyParameterAreEveryCombination) {
  const ProgramRun run =
      run_program({"bench", "data", "--data", demo, "--num-workers", "1,2", "batch_size=8,16",
                   "visible_gpus=0,1", "--repeat", "3", "--dry-run"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out,
            "data: --num-workers=1, batch_size=8: 0 warm-up, 3 counted\n"
            "data: --num-workers=1, batch_size=16: 0 warm-up, 3 counted\n"
            "data: --num-workers=2, batch_size=8: 0 warm-up, 3 counted\n"
            "data: --num-workers=2, batch_size=16: 0 warm-up, 3 counted\n");
}

TEST(Bench, ASweepIsRepeatedWrittenAndSaysWhereItWasMeasured) {
  const TestFolder folder;
  const std::string out = (folder / "today.json").string();
  const ProgramRun run =
      run_program({"bench", "data", "--data", demo_index(folder), "--seconds", "0.1",
                   "--num-workers", "1", "batch_size=4,8", "--repeat", "2", "--out", out});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(says(run.out, "| batch_size | stage | tandem clips/s |\n")) << run.out;
  EXPECT_TRUE(says(run.out, "| 8 | whole | ")) << run.out;
  EXPECT_TRUE(says(run.out, " ± ")) << run.out;
  const auto json = document_in(out);
  EXPECT_EQ(json["bench"], "data");
  EXPECT_EQ(json["repeat"], 2);
  EXPECT_GE(json["machine"]["cores"].get<int>(), 1);
  EXPECT_TRUE(json["date"].get<std::string>().starts_with("20"));
  EXPECT_TRUE(json.contains("commit"));
  EXPECT_TRUE(says(json["command"], "tandem bench data batch_size=4,8 "));
  int whole = 0;
  for (const auto& figure : json["figures"]) {
    if (figure["label"] != "whole" || figure["figure"] != "clips_per_second") continue;
    EXPECT_EQ(figure["parameters"]["batch_size"], whole == 0 ? "4" : "8");
    ++whole;
    EXPECT_EQ(figure["values"].size(), 2u);
    EXPECT_EQ(figure["better"], "higher");
    EXPECT_EQ(figure["unit"], "clips/s");
    EXPECT_DOUBLE_EQ(figure["mean"].get<double>(),
                     (figure["values"][0].get<double>() + figure["values"][1].get<double>()) / 2);
  }
  EXPECT_EQ(whole, 2);
}

TEST(Bench, CompareFlagsWhatIsSlowerAndExitsWithOne) {
  const TestFolder folder;
  const std::string index = demo_index(folder), first = (folder / "first.json").string();
  const std::vector<std::string> words{"bench",         "data", "--data",    index,
                                       "--num-workers", "1",    "--seconds", "0.1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run_program(more);
  };
  ASSERT_EQ(with({"--out", first}).code, 0);

  // The old file claims a tenth, then ten times, of what was measured.
  const auto scaled = [&](double factor) {
    auto json = document_in(first);
    for (auto& figure : json["figures"]) figure["mean"] = figure["mean"].get<double>() * factor;
    return folder.write("old.json", json.dump());
  };
  const ProgramRun faster = with({"--compare", scaled(0.1), "--format", "json"});
  EXPECT_EQ(faster.code, 0) << faster.err;
  const auto comparison = nlohmann::json::parse(faster.out)["comparison"];
  EXPECT_EQ(comparison["worse"], 0);
  EXPECT_GT(comparison["changes"].size(), 2u);

  const ProgramRun slower = with({"--compare", scaled(10)});
  EXPECT_EQ(slower.code, 1);
  EXPECT_TRUE(says(slower.err, "more than 10 % slower than in ")) << slower.err;
  EXPECT_TRUE(says(slower.err, "   whole: clips_per_second ")) << slower.err;
  EXPECT_TRUE(says(slower.out, "| whole | clips_per_second | ")) << slower.out;
  EXPECT_EQ(with({"--compare", scaled(10), "--tolerance", "99.9"}).code, 0);

  EXPECT_EQ(with({"--compare", (folder / "none.json").string()}).code, 4);
  const ProgramRun broken = with({"--compare", folder.write("old.json", "{\"bench\": \"data\"}")});
  EXPECT_EQ(broken.code, 3);
  EXPECT_TRUE(says(broken.err, "is no document of `tandem bench`: it has no list `figures`"));
  const ProgramRun other =
      with({"--compare", folder.write("old.json", "{\"bench\": \"train\", \"figures\": []}")});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(says(other.err, "holds figures of `tandem bench train`, not of `data`"));
  const ProgramRun nothing =
      with({"--compare", folder.write("old.json", "{\"bench\": \"data\", \"figures\": []}")});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_TRUE(says(nothing.err, "have no figure in common to compare"));
  auto strange = document_in(first);
  strange["machine"] = {{"name", 5}};
  const ProgramRun unnamed = with({"--compare", folder.write("old.json", strange.dump())});
  EXPECT_TRUE(says(unnamed.err, "was measured on another machine")) << unnamed.err;
}

TEST(Bench, WhatCannotEndWellIsRefusedBeforeItIsMeasured) {
  const TestFolder folder;
  // An hour of measuring: the test would not end.
  const std::vector<std::string> words{"bench",         "data", "--data",    demo_index(folder),
                                       "--num-workers", "1",    "--seconds", "3600"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run_program(more);
  };
  EXPECT_EQ(
      with({"--compare", folder.write("old.json", "{\"bench\": \"train\", \"figures\": []}")}).code,
      2);
  const ProgramRun nowhere = with({"--out", (folder / "no/such/folder.json").string()});
  EXPECT_EQ(nowhere.code, 4);
  EXPECT_TRUE(says(nowhere.err, "cannot be written")) << nowhere.err;
}

TEST(Bench, StepGivesTheFedStepBesideTheReplayedOne) {
  const TestFolder folder;
  const ProgramRun run = run_program({"bench", "step", "--data", demo_index(folder), "--seconds",
                                      "0.1", "--step-ms", "2,5", "--format", "json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_LE(json["floor"].get<double>(), 500);
  EXPECT_GT(json["tandem"].get<double>(), 0);
  std::vector<double> replayed;
  for (const auto& figure : json["figures"])
    if (figure["figure"] == "replay_step") replayed.push_back(figure["mean"]);
  ASSERT_EQ(replayed.size(), 2u);
  EXPECT_GE(replayed[0], 0.002);
  EXPECT_GE(replayed[1], 0.005);
}

TEST(Bench, TrainSynthesizeAndGenerateGiveTheSameFourNamesAtTheTop) {
  const std::vector<std::vector<std::string>> lines{
      {"bench", "train", "--size", "tiny", "--batches", "1", "--precision", "fp32"},
      {"bench", "synthesize", "--size", "tiny", "--batches", "2", "--codes", "10"},
      {"bench", "generate", "--size", "tiny", "--batches", "1,2", "--steps", "8"}};
  for (std::vector<std::string> words : lines) {
    words.insert(words.end(), {"--format", "json"});
    const ProgramRun run = run_program(words);
    ASSERT_EQ(run.code, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    EXPECT_GT(json["tandem"].get<double>(), 0) << words[1];
    for (const char* name : {"peer", "ratio", "floor"})
      EXPECT_TRUE(json.contains(name)) << words[1] << " " << name;
    EXPECT_TRUE(json["peer"].is_null());
    EXPECT_TRUE(json["ratio"].is_null());
  }
}

}  // namespace tandem
