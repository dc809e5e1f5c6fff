#include "observe/music_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "audio/file/audio_file.h"
#include "audio/file/write_audio.h"
#include "observe/music_report_clip.h"
#include "support/temporary_folder.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

class MusicReports : public testing::Test {
 protected:
  std::vector<float> tone(double seconds, int channels = 1) {
    std::vector<float> samples;
    for (int i = 0; i < seconds * 32000; ++i)
      for (int c = 0; c < channels; ++c)
        samples.push_back(0.5F *
                          static_cast<float>(std::sin(2 * std::numbers::pi * 440 * i / 32000)));
    return samples;
  }
  MusicReportClip clip(const std::string& name, const std::string& text = "calm piano") {
    const std::string path = (folder / (name + ".wav")).string();
    write_wav(path, tone(0.25), 1, 32000, SampleFormat::float32);
    return {.name = name, .text = text, .file = path};
  }
  static size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  }
  TestFolder folder;
};

TEST_F(MusicReports, PlaysAndShowsASampleOfTheClips) {
  MusicReport report{.title = "run", .state = "finished", .state_words = "finished"};
  for (int i = 0; i < 9; ++i) report.clips.push_back(clip("clip" + std::to_string(i)));
  report.most_clips = 3;
  const std::string html = make_music_report(report);
  EXPECT_EQ(count(html, "<audio controls"), 3u);
  EXPECT_EQ(count(html, "data:image/png;base64,"), 3u);
  for (const char* shown : {"clip0", "clip4", "clip8"})
    EXPECT_NE(html.find("Spectrogram of " + std::string(shown)), std::string::npos) << shown;
  EXPECT_NE(html.find("0.25 s, mono, 32000 Hz"), std::string::npos);
  EXPECT_NE(html.find("<code>audio_samples</code>"), std::string::npos);
}

TEST_F(MusicReports, KeepsToItsRoomForSound) {
  MusicReport report{.title = "run"};
  report.clips = {clip("a"), clip("b")};
  report.most_bytes = 44 + 2 * 8000 + 10;  // one clip in 16 bits
  const std::string html = make_music_report(report);
  EXPECT_EQ(count(html, "<audio controls"), 1u);
  EXPECT_EQ(count(html, "<img alt="), 2u);
}

TEST_F(MusicReports, ShowsFailuresDevicesPlanAndSettings) {
  MusicReport report{.title = "run", .settings = "seed: 3"};
  report.clips = {{.name = "bad", .error = "the prompt is gone"}};
  report.plan = {{"Batch", "64 at once"}};
  report.hardware = {{"/GPU:0", "NVIDIA H200"}};
  report.tiles = {{"1.50 h", "of sound"}};
  for (int i = 0; i < 4; ++i)
    report.timeline.push_back(
        {.time = 100.0 + i, .devices = {{.name = "/GPU:0", .utilisation = 0.9}}, .queues = {}});
  const std::string html = make_music_report(report);
  for (const char* part : {"Clips that failed", "the prompt is gone", "64 at once", "NVIDIA H200",
                           "90 %", "seed: 3", "1.50 h", "Utilisation"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(html.find("id=\"samples\""), std::string::npos);
}

TEST_F(MusicReports, EscapesWhatComesFromOutside) {
  const std::string hostile = "</script><script>alert(1)</script>\"'<img src=x>";
  MusicReport report{.title = hostile, .state_words = hostile, .settings = hostile};
  report.clips = {clip("a", hostile), {.name = hostile, .error = hostile}};
  report.plan = {{hostile, hostile}};
  report.timeline = {{.time = 1, .devices = {{.name = hostile, .utilisation = 1}}, .queues = {}},
                     {.time = 2, .devices = {{.name = hostile, .utilisation = 1}}, .queues = {}}};
  const std::string html = make_music_report(report);
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("<img src=x>"), std::string::npos);
}

TEST_F(MusicReports, PassesOverWhatIsNoSound) {
  MusicReport report{.title = "run"};
  report.clips = {{.name = "gone", .file = folder / "gone.wav"},
                  {.name = "text", .file = folder.write("text.wav", "no sound")},
                  clip("good")};
  const std::string html = make_music_report(report);
  EXPECT_EQ(count(html, "<audio controls"), 1u);
}

TEST_F(MusicReports, EmbedsSixteenBitsOfAFileOfFloats) {
  const std::string path = (folder / "a.wav").string();
  write_wav(path, std::vector<float>{0.5F, -0.5F, 2.0F, -2.0F}, 2, 32000, SampleFormat::float32);
  const auto half = to_wav16(read_file(path));
  ASSERT_TRUE(half);
  ASSERT_EQ(half->size(), 44u + 8u);
  int16_t samples[4];
  std::memcpy(samples, half->data() + 44, sizeof samples);
  EXPECT_EQ(samples[0], 16384);
  EXPECT_EQ(samples[1], -16384);
  EXPECT_EQ(samples[2], 32767);
  EXPECT_EQ(samples[3], -32768);
  const auto file = open_audio({.path = folder.write("half.wav", *half)});
  EXPECT_EQ(file->info().channels, 2);
  EXPECT_EQ(file->info().frames, 2);
  EXPECT_EQ(file->info().sample_rate, 32000);
  EXPECT_FALSE(to_wav16(*half));  // 16 bits already
  EXPECT_FALSE(to_wav16("RIFF"));
  EXPECT_FALSE(to_wav16(std::string(100, 'x')));
}

TEST_F(MusicReports, ReadsFlac) {
  const std::string path = (folder / "a.flac").string();
  write_flac(path, tone(0.1, 2), 2, 32000);
  const auto look = look_at_clip(path);
  ASSERT_TRUE(look);
  EXPECT_EQ(look->type, "audio/flac");
  EXPECT_EQ(look->channels, 2);
  EXPECT_EQ(look->bytes, read_file(path));
}

}  // namespace
}  // namespace tandem
