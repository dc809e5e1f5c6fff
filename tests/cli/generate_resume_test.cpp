#include <chrono>
#include <csignal>
#include <thread>

#include "cli/generate_run.h"

namespace tandem {
namespace {

using GenerateResume = GenerateRuns;

// Runs until some clips are there, then gives it the signal.
ProgramRun stopped_run(const std::vector<std::string>& words, const std::filesystem::path& folder,
                       int signal) {
  Program program(words, {{"TANDEM_SIMULATE_SLOWNESS", "10"}});
  std::error_code ignored;
  const auto has_clips = [&] {
    for (const auto& file : std::filesystem::directory_iterator(folder / "audio_samples", ignored))
      if (file.path().extension() == ".wav") return true;
    return false;
  };
  for (int i = 0; i < 2000 && !has_clips(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  program.signal(signal);
  return program.wait();
}

TEST_F(GenerateResume, TheSameCommandMakesNothingTwice) {
  const Words words = {"--captions", write_captions(6), "paths.data_dir=" + path("data")};
  ASSERT_EQ(run(words).code, 0);
  const std::filesystem::path made = only_folder_in(folder / "data" / "tiny");
  const auto first = clips_in(made);
  std::filesystem::remove(made / "audio_samples" / "c2.wav");
  const ProgramRun again = run(words, 1);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("6 clips: 1 made, 5 done before, 0 failed"), std::string::npos)
      << again.out;
  EXPECT_NE(again.out.find("going on in " + made.string()), std::string::npos) << again.out;
  EXPECT_EQ(only_folder_in(folder / "data" / "tiny"), made);
  EXPECT_EQ(clips_in(made), first);
}

TEST_F(GenerateResume, AnotherRecipeOrFreshHasAFolderOfItsOwn) {
  Words words = {"--prompt", "drums", "paths.data_dir=" + path("data")};
  ASSERT_EQ(run(words).code, 0);
  words.push_back("generation.top_k=7");
  ASSERT_EQ(run(words).code, 0);
  words.push_back("--fresh");
  ASSERT_EQ(run(words).code, 0);
  const std::filesystem::directory_iterator all(folder / "data" / "tiny");
  EXPECT_EQ(std::distance(begin(all), end(all)), 3);
}

TEST_F(GenerateResume, SignalsEndItWithTheirCodesAndARerunGoesOn) {
  const std::string captions = write_captions(24);
  ASSERT_EQ(run({"--captions", captions, "-o", path("whole")}).code, 0);
  const auto whole = clips_in(path("whole"));
  const Words words = words_of({"--captions", captions, "-b", "2", "-o", path("a")});
  struct Case {
    int signal, code;
  };
  for (const Case& one : {Case{SIGINT, 130}, Case{SIGTERM, 143}, Case{SIGUSR1, 143}}) {
    remove_tree(path("a"));
    const ProgramRun stopped = stopped_run(words, folder / "a", one.signal);
    ASSERT_EQ(stopped.code, one.code) << stopped.err;
    for (const auto& [name, bytes] : clips_in(path("a"))) EXPECT_EQ(bytes, whole.at(name)) << name;
    EXPECT_NE(read_file(folder / "a" / "report.html").find("class=\"state stopped\""),
              std::string::npos);
    EXPECT_NE(read_file(folder / "a" / "run.json").find("\"finished\": false"), std::string::npos);
    const ProgramRun again = run_program(words);
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.out.find(" 0 done before"), std::string::npos) << again.out;
    EXPECT_EQ(clips_in(path("a")), whole);
    EXPECT_NE(read_file(folder / "a" / "run.json").find("\"finished\": true"), std::string::npos);
  }
}

TEST_F(GenerateResume, ShardsShareAFolder) {
  const std::string captions = write_captions(10);
  ASSERT_EQ(run({"--captions", captions, "-o", path("whole")}).code, 0);
  Words words = {"--captions",       captions,  "paths.data_dir=" + path("data"),
                 "paths.run_id=job", "--shard", "0/3"};
  ASSERT_EQ(run(words).code, 0);
  words.back() = "1/3";
  ASSERT_EQ(run(words).code, 0);
  const std::filesystem::path made = folder / "data" / "tiny" / "job";
  EXPECT_EQ(clips_in(made).size(), 7u);
  EXPECT_FALSE(std::filesystem::exists(made / "manifest.jsonl"));
  // SLURM's array that begins at 1.
  words.back() = "auto";
  const ProgramRun last = run_program(words_of(words), {{"SLURM_ARRAY_TASK_ID", "3"},
                                                        {"SLURM_ARRAY_TASK_COUNT", "3"},
                                                        {"SLURM_ARRAY_TASK_MIN", "1"}});
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(clips_in(made), clips_in(path("whole")));
  EXPECT_EQ(read_file(made / "manifest.jsonl"), read_file(folder / "whole" / "manifest.jsonl"));
}

TEST_F(GenerateResume, TasksOfAnArrayNameTheirFolderAfterTheJob) {
  const Words words = words_of(
      {"--captions", write_captions(4), "--shard", "auto", "paths.data_dir=" + path("data")});
  const ProgramRun told = run_program(words, {{"SLURM_ARRAY_JOB_ID", "17"},
                                              {"SLURM_ARRAY_TASK_ID", "0"},
                                              {"SLURM_ARRAY_TASK_COUNT", "2"},
                                              {"SLURM_ARRAY_TASK_MIN", "0"}});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_EQ(clips_in(folder / "data" / "tiny" / "job_17").size(), 2u);
}

TEST_F(GenerateResume, AnArrayCountsOnlyWhenAsked) {
  const Words words = words_of({"--captions", write_captions(4), "-o", path("a")});
  const ProgramRun told = run_program(words, {{"SLURM_ARRAY_JOB_ID", "17"},
                                              {"SLURM_ARRAY_TASK_ID", "0"},
                                              {"SLURM_ARRAY_TASK_COUNT", "2"}});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_EQ(clips_in(path("a")).size(), 4u);
  const ProgramRun alone =
      run({"--captions", path("captions.csv"), "--shard", "auto", "-o", path("b")});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_NE(alone.out.find("no SLURM job array here, all clips are made"), std::string::npos);
  EXPECT_EQ(clips_in(path("b")).size(), 4u);
}

TEST_F(GenerateResume, ClipsThatFailAreNamedAndTriedAgain) {
  const std::string table = folder.write(
      "table.csv", "id,caption,sound\na,piano,\nb,drums," + path("missing.wav") + "\n");
  const Words words = {"--captions", table, "data.audio_prompt_column=sound", "-o", path("out")};
  const ProgramRun told = run(words);
  EXPECT_EQ(told.code, 3);
  EXPECT_NE(told.err.find("1 of 2 clips could not be made"), std::string::npos) << told.err;
  EXPECT_EQ(clips_in(path("out")).size(), 1u);
  EXPECT_NE(read_file(folder / "out" / "report.html").find("Clips that failed"), std::string::npos);
  ASSERT_EQ(run({"--prompt", "calm piano", "-o", path("missing.wav")}).code, 0);
  const ProgramRun again = run(words);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(clips_in(path("out")).size(), 2u);
}

}  // namespace
}  // namespace tandem
