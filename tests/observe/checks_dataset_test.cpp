#include "observe/checks_dataset.h"

#include <gtest/gtest.h>

#include "support/tiny_xtts.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

std::map<std::string, Check> data_checks(const std::string& path, bool text = false) {
  std::map<std::string, Check> all;
  for (const Check& check : check_data(path, text, {})) all[check.name] = check;
  return all;
}

// LJSpeech's way: clips c0, c1, …
std::string made_clips(const TestFolder& folder, int count, int rate) {
  std::string table;
  std::filesystem::create_directories(folder / "d/wavs");
  for (int i = 0; i < count; ++i) {
    const std::string id = "c" + std::to_string(i);
    write_recording(folder, "d/wavs/" + id + ".wav", 0.6, 1, rate);
    table += id + "|some words|some words\n";
  }
  folder.write("d/metadata.csv", table);
  return (folder / "d").string();
}

}  // namespace

TEST(DatasetChecks, AGoodDatasetPassesWithItsFigures) {
  const TestFolder folder;
  const auto checks = data_checks(made_clips(folder, 5, 22050));
  EXPECT_EQ(checks.at("dataset").verdict, Verdict::pass);
  EXPECT_TRUE(checks.at("dataset").found.starts_with("LJSpeech: ")) << checks.at("dataset").found;
  EXPECT_TRUE(checks.at("dataset").found.ends_with("; 5 clips; 0 of 5 opened are broken"));
  EXPECT_EQ(checks.at("formats").found, "wav pcm16; 100.0 % read by the native reader");
  EXPECT_EQ(checks.at("sample rates").found, "22050 Hz, as training wants them");
  EXPECT_TRUE(checks.contains("data's disk"));
  EXPECT_TRUE(contains(checks.at("reading data").found, " of 5 files in ")) << "not read";
}

TEST(DatasetChecks, BrokenClipsWarnAndManyFail) {
  const TestFolder folder;
  const std::string data = made_clips(folder, 10, 22050);
  put(data + "/wavs/c3.wav", "no sound at all");
  EXPECT_EQ(data_checks(data).at("dataset").verdict, Verdict::warn);
  std::filesystem::remove(data + "/wavs/c4.wav");
  put(data + "/wavs/c5.wav", "");
  const Check many = data_checks(data).at("dataset");
  EXPECT_EQ(many.verdict, Verdict::fail);
  EXPECT_TRUE(contains(many.found, "3 of 10 opened are broken: ")) << many.found;
  EXPECT_TRUE(contains(many.advice, "above 20 %"));
}

TEST(DatasetChecks, NarrowSoundsWarn) {
  const TestFolder folder;
  const Check narrow = data_checks(made_clips(folder, 3, 8000)).at("sample rates");
  EXPECT_EQ(narrow.verdict, Verdict::warn);
  EXPECT_EQ(narrow.found, "8000 Hz; 100.0 % resampled to 22050 Hz");
  EXPECT_TRUE(contains(narrow.advice, "nothing above 4000 Hz"));
  const TestFolder wide;
  EXPECT_EQ(data_checks(made_clips(wide, 3, 44100)).at("sample rates").verdict, Verdict::pass);
}

TEST(DatasetChecks, WhatIsNoDatasetFails) {
  const TestFolder folder;
  EXPECT_EQ(data_checks(folder.path().string()).at("dataset").verdict, Verdict::fail);
  EXPECT_EQ(data_checks("/no/such/data").at("dataset").verdict, Verdict::fail);
}

TEST(DatasetChecks, FormatsThatNeedFfmpegWarn) {
  DatasetFacts facts{.clips = 10, .opened = 10, .by_ffmpeg = 6};
  facts.formats = {{"mp4", 6}, {"wav pcm16", 4}};
  facts.rates = {{22050, 10}};
  const auto checks = check_dataset(facts, {});
  EXPECT_EQ(checks.at(1).verdict, Verdict::warn);
  EXPECT_TRUE(checks.at(1).found.starts_with("mp4 60.0 %, wav pcm16 40.0 %")) << checks[1].found;
}

TEST(DatasetChecks, TheStageBytesReadsAFileOfText) {
  const TestFolder folder;
  const std::string file = folder.write("book.txt", std::string(2048, 'a'));
  EXPECT_EQ(data_checks(file, true).at("dataset").found, "`" + file + "`, 2.0 KiB of text");
  EXPECT_EQ(data_checks(folder.path().string(), true).at("dataset").verdict, Verdict::fail);
  EXPECT_EQ(data_checks(folder.write("empty", ""), true).at("dataset").verdict, Verdict::fail);
}

}  // namespace tandem::tests
