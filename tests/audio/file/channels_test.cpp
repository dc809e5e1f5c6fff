#include "audio/file/channels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "audio/file/write_audio.h"
#include "support/captured.h"
#include "support/temporary_folder.h"

namespace tandem {
namespace {

// Left counts up, right down, in steps that 16 bits keep.
std::vector<float> two_channels(size_t frames) {
  std::vector<float> samples;
  for (size_t i = 0; i < frames; ++i) {
    const float step = static_cast<float>(i % 1000) / 1024;
    samples.push_back(step);
    samples.push_back(-step);
  }
  return samples;
}

}  // namespace

TEST(ReadChannels, KeepsThemApart) {
  const TestFolder folder;
  const size_t frames = 40000;  // more than one block
  const std::vector<float> samples = two_channels(frames);
  write_wav(folder / "float.wav", samples, 2, 32000, SampleFormat::float32);
  write_wav(folder / "pcm.wav", samples, 2, 32000, SampleFormat::pcm16);
  write_flac(folder / "a.flac", samples, 2, 32000);
  for (const char* name : {"float.wav", "pcm.wav", "a.flac"}) {
    const ChannelSound sound = read_channels(folder / name);
    ASSERT_EQ(sound.channels.size(), 2u) << name;
    EXPECT_EQ(sound.info.frames, static_cast<int64_t>(frames)) << name;
    EXPECT_EQ(sound.info.sample_rate, 32000);
    for (size_t i = 0; i < frames; ++i) {
      ASSERT_EQ(sound.channels[0][i], samples[2 * i]) << name << " " << i;
      ASSERT_EQ(sound.channels[1][i], samples[2 * i + 1]) << name << " " << i;
    }
  }
}

TEST(ReadChannels, HandsOverWhatIsNotFiniteAndBeyondFullScale) {
  const TestFolder folder;
  std::vector<float> samples(100, 0.5F);
  samples[40] = 2.5F;
  write_wav(folder / "a.wav", samples, 1, 32000, SampleFormat::float32);
  const uint32_t nan = 0x7fc00000;
  std::fstream file(folder / "a.wav", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-4 * 10, std::ios::end);
  file.write(reinterpret_cast<const char*>(&nan), 4);
  file.close();
  const ChannelSound sound = read_channels(folder / "a.wav");
  EXPECT_EQ(sound.channels[0][40], 2.5F);
  EXPECT_TRUE(std::isnan(sound.channels[0][90]));
  EXPECT_EQ(sound.channels[0][91], 0.5F);
}

TEST(ReadChannels, RefusesWhatIsNotThereCutShortOrNoSound) {
  const TestFolder folder;
  EXPECT_EQ(error_of([&] { read_channels(folder / "no.wav"); }).kind(), ErrorKind::io);
  folder.write("text.wav", "no sound at all");
  EXPECT_EQ(error_of([&] { read_channels(folder / "text.wav"); }).kind(), ErrorKind::data);
  write_flac(folder / "cut.flac", two_channels(40000), 2, 32000);
  std::filesystem::resize_file(folder / "cut.flac",
                               std::filesystem::file_size(folder / "cut.flac") / 2);
  EXPECT_EQ(error_of([&] { read_channels(folder / "cut.flac"); }).kind(), ErrorKind::data);
}

}  // namespace tandem
