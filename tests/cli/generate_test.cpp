#include "cli/generate_run.h"

namespace tandem {
namespace {

using Generate = GenerateRuns;

TEST_F(Generate, SaysWhichGpusShareTheBatch) {
  const ProgramRun two = run({"--captions", write_captions(8), "-b", "64", "-o", path("a")}, 2);
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_TRUE(two.out.starts_with(
      "Available GPUs: 2\nUsing GPUs: [0, 1]\nTotal batch size: 64\nPer-GPU batch size: 32\n"))
      << two.out;
  const ProgramRun three = run({"--prompt", "a", "-b", "64", "--plan"}, 3);
  EXPECT_TRUE(three.out.starts_with(
      "Available GPUs: 3\nUsing GPUs: [0, 1, 2]\nTotal batch size: 64\nPer-GPU batch size: 21\n"))
      << three.out;
  EXPECT_NE(three.out.find("a device 21, 21, 22"), std::string::npos) << three.out;
}

TEST_F(Generate, WorksOnOneGpuAndOnNone) {
  const ProgramRun one = run({"--prompt", "calm piano", "-o", path("one.wav")}, 1);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(one.out.starts_with(
      "Available GPUs: 1\nLess than 2 GPUs available. Generating on one, 1 at a time.\n"))
      << one.out;
  const ProgramRun none = run({"--prompt", "calm piano", "-o", path("none.wav")}, 0);
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_TRUE(
      none.out.starts_with("Available GPUs: 0\nLess than 2 GPUs available. Generating on the CPU, "
                           "which is slow.\nTotal batch size: 1\n"))
      << none.out;
  EXPECT_EQ(read_file(path("one.wav")), read_file(path("none.wav")));
}

TEST_F(Generate, WritesTheFolderOfTheContract) {
  const ProgramRun told = run({"--captions", write_captions(10), "--json",
                               "paths.data_dir=" + path("data"), "paths.run_id=first"});
  ASSERT_EQ(told.code, 0) << told.err;
  const std::filesystem::path made = folder / "data" / "tiny" / "first";
  const nlohmann::json document = nlohmann::json::parse(told.out);
  EXPECT_EQ(document["folder"], made.string());
  EXPECT_EQ(document["made"], 10);
  EXPECT_EQ(document["failed"], 0);
  EXPECT_NEAR(document["seconds"], 2.0, 1e-9);
  EXPECT_NEAR(document["hours"], 2.0 / 3600, 1e-9);
  EXPECT_GT(document["device_seconds_a_clip"], 0);
  EXPECT_EQ(document["devices"].size(), 2);
  const auto clips = clips_in(made);
  EXPECT_EQ(clips.size(), 10u);
  EXPECT_TRUE(clips.contains("c3.wav") && clips.contains("c3_2.wav"));
  EXPECT_NE(clips.at("c3.wav"), clips.at("c3_2.wav"));
  EXPECT_EQ(lines_of(made / "manifest.jsonl").size(), 10u);
  EXPECT_TRUE(read_file(made / "metadata.csv").starts_with("id,caption,mood,filename\n"))
      << read_file(made / "metadata.csv").substr(0, 60);
  EXPECT_NE(read_file(made / "config.yaml").find("run_id: first"), std::string::npos);
  const std::string report = read_file(made / "report.html");
  EXPECT_NE(report.find("data:audio/wav;base64,"), std::string::npos);
  EXPECT_NE(report.find("Spectrogram of c3_2"), std::string::npos);
  EXPECT_EQ(told.err.find("error"), std::string::npos) << told.err;
  EXPECT_NE(told.err.find("10 clips: 10 made, 0 done before, 0 failed"), std::string::npos);
  EXPECT_NE(told.err.find("hours of sound"), std::string::npos);
}

TEST_F(Generate, TheSameClipsHoweverTheyAreMade) {
  const std::string captions = write_captions(9);
  ASSERT_EQ(run({"--captions", captions, "-b", "9", "-o", path("one")}, 1).code, 0);
  ASSERT_EQ(run({"--captions", captions, "-b", "5", "-o", path("three")}, 3).code, 0);
  ASSERT_EQ(
      run({"--captions", captions, "-b", "4", "-o", path("split"), "generation.split=batch"}, 2)
          .code,
      0);
  const auto first = clips_in(path("one"));
  EXPECT_EQ(first.size(), 9u);
  EXPECT_EQ(clips_in(path("three")), first);
  EXPECT_EQ(clips_in(path("split")), first);
  ASSERT_EQ(run({"--captions", captions, "--seed", "7", "-o", path("seven")}).code, 0);
  EXPECT_NE(clips_in(path("seven")), first);
}

TEST_F(Generate, TakesSeveralPromptsAndWordsBehindThem) {
  const ProgramRun told = run({"--prompt", "calm piano", "--prompt", "seed=3 drums",
                               "generation.top_k=5", "-o", path("a")});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_EQ(clips_in(path("a")).size(), 2u);
  EXPECT_NE(read_file(folder / "a" / "config.yaml").find("top_k: 5"), std::string::npos);
}

TEST_F(Generate, SecondsBecomeTokens) {
  const ProgramRun told = run({"--prompt", "a", "--seconds", "30", "--plan", "--json"}, 1);
  ASSERT_EQ(told.code, 0) << told.err;
  const nlohmann::json plan = nlohmann::json::parse(told.out);
  EXPECT_EQ(plan["new_tokens"], 1503);
  EXPECT_EQ(plan["clip_seconds"], 30.0);
  EXPECT_EQ(plan["steps"], 1503);
  EXPECT_EQ(plan["windows"], 1);
}

TEST_F(Generate, PlansWithoutMakingAnything) {
  const ProgramRun told = run({"--captions", write_captions(20), "--plan", "max_new_tokens=255",
                               "paths.data_dir=" + path("data")});
  ASSERT_EQ(told.code, 0) << told.err;
  for (const char* part : {"Memory ", "weights ", "cache ", "20 of 255 tokens, 5.04 s each",
                           "255 a batch", "ms a step", "hours) in all", "% of 8.0 GiB free"}) {
    EXPECT_NE(told.out.find(part), std::string::npos) << part << "\n" << told.out;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "data"));
}

TEST_F(Generate, ChoosesABatchThatLeavesMemoryFree) {
  Words words = words_of({"--captions", write_captions(2000), "--plan", "--json",
                          "max_new_tokens=255", "batch_size=auto"});
  const ProgramRun told = run_program(words, {{"TANDEM_SIMULATE_MEMORY", "200"}});
  ASSERT_EQ(told.code, 0) << told.err;
  const nlohmann::json plan = nlohmann::json::parse(told.out);
  const double free = plan["memory"]["free_share"];
  EXPECT_GE(free, 0.10) << told.out;
  EXPECT_LE(free, 0.15) << told.out;
  EXPECT_GT(plan["batch_size"], 2);
}

TEST_F(Generate, GoesOnFromASound) {
  ASSERT_EQ(run({"--prompt", "calm piano", "-o", path("a.wav")}).code, 0);
  const ProgramRun told =
      run({"--prompt", "drums", "--audio-prompt", path("a.wav"), "-o", path("b.wav"), "--json"});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_NEAR(nlohmann::json::parse(told.out)["seconds"], 0.4, 1e-9);  // prompt included
}

TEST_F(Generate, KeepsStereo) {
  const ProgramRun told = run(
      {"--model", model("stereo"), "--prompt", "drums", "-o", path("a.wav"), "max_new_tokens=20"});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_EQ(read_file(path("a.wav")).at(22), 2);  // channels, in the header
}

TEST_F(Generate, FindsTheModelByItsName) {
  std::filesystem::create_directories(folder / "models");
  std::filesystem::create_directory_symlink(model(), folder / "models" / "musicgen-small");
  const ProgramRun told = run_program(
      {"generate", "--simulate-gpus", "1", "model=tta/musicgen-small", "--prompt", "drums",
       "paths.model_dir=" + path("models"), "paths.data_dir=" + path("data"), "max_new_tokens=9"});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_EQ(clips_in(only_folder_in(folder / "data" / "musicgen-small")).size(), 1u);
}

TEST_F(Generate, CutsLongCaptionsAndSaysSoInThePlan) {
  std::string words;
  for (int i = 0; i < 2000; ++i) words += "piano ";
  const ProgramRun told =
      run({"--prompt", words, "-o", path("a.wav"), "--json", "data.max_sequence_length=40"});
  ASSERT_EQ(told.code, 0) << told.err;
  const ProgramRun plan =
      run({"--prompt", words, "--plan", "--json", "data.max_sequence_length=40"});
  EXPECT_EQ(nlohmann::json::parse(plan.out)["longest_text"], 40);
}

}  // namespace
}  // namespace tandem
