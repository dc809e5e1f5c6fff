#include "audio/file/write_audio.h"

#include <gtest/gtest.h>

#include <cmath>

#include "audio/file/wav_bytes.h"
#include "support/captured.h"
#include "support/temporary_folder.h"
#include "util/atomic_file.h"

namespace tandem::tests {
namespace {

class WriteAudio : public testing::Test {
 protected:
  std::string path(const char* name = "out") const { return (folder / name).string(); }
  std::vector<float> read_back() const { return read_whole(*open_audio({.path = path()})); }
  bool nothing_left() const { return std::filesystem::is_empty(folder.path()); }
  const TestFolder folder;
};

TEST_F(WriteAudio, WritesTheVeryBytesOfAPcmFile) {
  write_wav(path(), std::vector<float>{0.5F, -0.5F, 0.25F, -1}, 2, 22050, SampleFormat::pcm16);
  EXPECT_EQ(read_file(path()),
            wav16({16384, -16384, 8192, -32768}, {.channels = 2, .rate = 22050}));
}

TEST_F(WriteAudio, RoundsToTheNearestStepAndClips) {
  const float step = 1 / 32768.0F;
  write_wav(path(),
            std::vector<float>{0.4F * step, 0.5F * step, -0.5F * step, 1.4F * step, -1.6F * step, 1,
                               1.5F, -1, -7, 32766.6F * step},
            1, 16000, SampleFormat::pcm16);
  EXPECT_EQ(read_file(path()), wav16({0, 1, -1, 1, -2, 32767, 32767, -32768, -32768, 32767}));
}

TEST_F(WriteAudio, KeepsEverySixteenBitSampleExactly) {
  std::vector<float> samples;
  for (int i = -32768; i < 32768; ++i) samples.push_back(static_cast<float>(i) / 32768);
  write_wav(path(), samples, 1, 16000, SampleFormat::pcm16);
  EXPECT_EQ(read_back(), samples);
  write_flac(path(), samples, 1, 16000);
  EXPECT_EQ(read_back(), samples);
}

TEST_F(WriteAudio, KeepsFloatsExactly) {
  const std::vector<float> samples = {0.1F, -3.5F, 1e-30F, 0};
  write_wav(path(), samples, 1, 48000, SampleFormat::float32);
  EXPECT_EQ(read_back(), samples);
  const auto theirs = open_audio({.path = path()}, {.native = false});
  EXPECT_EQ(read_whole(*theirs), samples) << "libsndfile reads it too";
  EXPECT_EQ(theirs->info().format, "wav float32");
}

TEST_F(WriteAudio, WritesFlacOfSeveralChannels) {
  write_flac(path(), std::vector<float>{0.5F, 0.25F, -0.5F, -1}, 2, 44100);
  const auto file = open_audio({.path = path()});
  EXPECT_EQ(file->info().format, "flac");
  EXPECT_EQ(file->info().channels, 2);
  EXPECT_EQ(file->info().sample_rate, 44100);
  EXPECT_EQ(read_whole(*file), (std::vector<float>{0.375F, -0.75F}));
}

TEST_F(WriteAudio, RefusesWhatCannotBeWrittenAndLeavesNothing) {
  const std::vector<float> two = {0, 0}, bad = {0, NAN};
  const auto kind_of = [&](const std::function<void()>& write) { return error_of(write).kind(); };
  const auto wav = [&](const std::vector<float>& samples, int channels, int rate) {
    return [&, samples, channels, rate] {
      write_wav(path(), samples, channels, rate, SampleFormat::float32);
    };
  };
  const auto flac = [&](const std::vector<float>& samples, int channels, int rate) {
    return [&, samples, channels, rate] { write_flac(path(), samples, channels, rate); };
  };
  EXPECT_EQ(kind_of(wav(bad, 1, 16000)), ErrorKind::data);
  EXPECT_EQ(kind_of(wav(two, 0, 16000)), ErrorKind::data);
  EXPECT_EQ(kind_of(wav(two, 70000, 16000)), ErrorKind::data);
  EXPECT_EQ(kind_of(wav(two, 1, 0)), ErrorKind::data);
  EXPECT_EQ(kind_of(wav({0, 0, 0}, 2, 16000)), ErrorKind::data);
  EXPECT_EQ(kind_of(flac(bad, 1, 16000)), ErrorKind::data);
  EXPECT_EQ(kind_of(flac(two, 9, 16000)), ErrorKind::data);
  EXPECT_EQ(kind_of(flac(two, 1, 2'000'000)), ErrorKind::data);
  EXPECT_TRUE(nothing_left());
}

TEST_F(WriteAudio, RefusesMoreThanAWavFileHolds) {
  const float sample = 0;
  // Refused by its length, before any of it is looked at.
  const std::span<const float> huge(&sample, size_t{1} << 31);
  const Error error = error_of([&] { write_wav(path(), huge, 1, 48000, SampleFormat::pcm16); });
  EXPECT_TRUE(contains(error.what(), "4 GiB")) << error.what();
  EXPECT_TRUE(nothing_left());
}

TEST_F(WriteAudio, KeepsTheOldFileWhenTheNewCannotBeWritten) {
  write_wav(path(), std::vector<float>{0.5F}, 1, 16000, SampleFormat::pcm16);
  EXPECT_EQ(error_of([&] {
              write_wav(path(), std::vector<float>{INFINITY}, 1, 16000, SampleFormat::pcm16);
            }).kind(),
            ErrorKind::data);
  EXPECT_EQ(read_back(), std::vector<float>{0.5F});
  const std::string nowhere = (folder / "none" / "a.wav").string();
  EXPECT_EQ(error_of([&] {
              write_wav(nowhere, std::vector<float>{0}, 1, 16000, SampleFormat::pcm16);
            }).kind(),
            ErrorKind::io);
}

}  // namespace
}  // namespace tandem::tests
