#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
const std::string demo = TANDEM_SOURCE_DIR "/assets/demo";

// The bytes of a WAV file: a second of a quiet square wave at 16 kHz.
std::string wav(int samples = 16000) {
  std::string data;
  for (int i = 0; i < samples; ++i)
    data += i / 40 % 2 ? std::string("\x10\x04", 2) : std::string("\xf0\xfb", 2);
  const auto number = [](uint32_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
  };
  const auto size = static_cast<uint32_t>(data.size());
  return "RIFF" + number(36 + size, 4) + "WAVEfmt " + number(16, 4) + number(1, 2) + number(1, 2) +
         number(16000, 4) + number(32000, 4) + number(2, 2) + number(16, 2) + "data" +
         number(size, 4) + data;
}

// The one line of complaint, checked to be one.
std::string sentence(const ProgramRun& run) {
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  return run.err;
}

}  // namespace

TEST(Prepare, TheDemoCorpusGivesAnIndexAReportAndAVocabulary) {
  const TestFolder folder;
  const std::string out = (folder / "demo.index").string();
  const ProgramRun run = run_program(
      {"prepare", demo, "--language", "en", "--out", out, "--train-tokenizer", "150", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["index"], out);
  for (const char* file :
       {"demo.index", "demo.index.dropped.tsv", "demo.index.report.html", "vocab.json"})
    EXPECT_TRUE(fs::exists(folder / file)) << file;
  const ProgramRun again =
      run_program({"prepare", demo, "--language", "en", "--out", out, "--json"});
  EXPECT_EQ(nlohmann::json::parse(again.out)["reused"], 92) << again.err;
}

TEST(Prepare, CachesMelsAndLeavesThemWhereTheyAreDone) {
  const TestFolder folder;
  const std::string out = (folder / "demo.index").string();
  const std::vector<std::string> words{"prepare", demo, "--language", "en",
                                       "--out",   out,  "--cache",    "mels"};
  const ProgramRun run = run_program(words);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto size = fs::file_size(folder / "demo.index.mels");
  EXPECT_GT(size, 92u * 80 * 4 * 50);
  const ProgramRun again = run_program(words);
  EXPECT_EQ(fs::file_size(folder / "demo.index.mels"), size);
  EXPECT_NE((again.out + again.err).find("92 of them from before"), std::string::npos) << again.err;
  const ProgramRun codes = run_program({"prepare", demo, "--cache", "codes"});
  EXPECT_EQ(codes.code, 2);
  EXPECT_NE(sentence(codes).find("--cache codes needs the DVAE"), std::string::npos);
}

TEST(Prepare, WhatCannotBePreparedGetsOneSentenceAndItsCode) {
  const TestFolder folder;
  folder.write("windows/metadata.csv", "a|caf\xe9 bar|caf\xe9 bar\n");
  folder.write("windows/wavs/a.wav", wav());
  folder.write("commas/metadata.csv", "a.wav,hello there\nb.wav,good day\n");
  folder.write("commas/a.wav", wav());
  folder.write("silent/readme.md", "nothing to hear");
  folder.write("good/metadata.csv", "a|hello there|hello there\n");
  folder.write("good/wavs/a.wav", wav());
  const auto path = [&](const char* name) { return (folder / name).string(); };

  const ProgramRun windows = run_program({"prepare", path("windows")});
  EXPECT_EQ(windows.code, 3);
  EXPECT_NE(sentence(windows).find("metadata.csv:1"), std::string::npos) << windows.err;

  const ProgramRun commas = run_program({"prepare", path("commas")});
  EXPECT_EQ(commas.code, 3) << commas.out;
  EXPECT_NE(sentence(commas).find("metadata.csv"), std::string::npos) << commas.err;

  const ProgramRun silent = run_program({"prepare", path("silent")});
  EXPECT_EQ(silent.code, 3);
  EXPECT_NE(sentence(silent).find(path("silent")), std::string::npos);

  const ProgramRun nowhere = run_program({"prepare", path("nowhere")});
  EXPECT_EQ(nowhere.code, 4);
  EXPECT_NE(sentence(nowhere).find(path("nowhere")), std::string::npos);

  const ProgramRun locked = run_program({"prepare", path("good"), "--out", "/proc/good.index"});
  EXPECT_EQ(locked.code, 4);
  EXPECT_NE(sentence(locked).find("/proc"), std::string::npos);

  EXPECT_EQ(run_program({"prepare"}).code, 2);
}

TEST(Prepare, BrokenFilesAmongGoodOnesAreDroppedWithTheirReasons) {
  const TestFolder folder;
  const std::string made = (folder / "made").string();
  const std::string command =
      "python3 " TANDEM_SOURCE_DIR "/tests/support/make_broken_files.py '" + made + "' >/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const ProgramRun run = run_program({"prepare", made + "/ljspeech", "--language", "en"});
  ASSERT_EQ(run.code, 0) << run.err;
  std::ifstream list(made + "/ljspeech/tandem.index.dropped.tsv");
  std::string dropped((std::istreambuf_iterator<char>(list)), {});
  for (const char* reason :
       {"truncated", "empty", "not audio", "not finite", "too long", "missing", "unreadable"})
    EXPECT_NE(dropped.find(reason), std::string::npos) << reason << "\n" << dropped;
  const ProgramRun feed =
      run_program({"bench", "data", "--data", made + "/ljspeech", "--seconds", "0.1", "--format",
                   "json", "--simulate-gpus", "2", "--data-gpu", "0", "--model-gpu", "1"});
  ASSERT_EQ(feed.code, 0) << feed.err;

  const ProgramRun strict = run_program({"prepare", made + "/ljspeech", "--max-bad-share", "0.05"});
  EXPECT_EQ(strict.code, 3);
  EXPECT_NE(strict.err.find("dropped.tsv"), std::string::npos) << strict.err;
}

}  // namespace tandem
