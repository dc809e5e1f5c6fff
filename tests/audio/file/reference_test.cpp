// Every format against what soundfile and ffmpeg read (tests/parity/make_audio_fixtures.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "audio/file/mpeg_reader.h"
#include "audio/file/mpeg_tag.h"
#include "audio/file/sndfile_reader.h"
#include "audio/file/wav_bytes.h"
#include "audio/file/write_audio.h"
#include "support/temporary_folder.h"
#include "util/atomic_file.h"

namespace tandem::tests {
namespace {

const std::string folder = TANDEM_SOURCE_DIR "/tests/audio/file/fixtures/";

std::string bytes_of_fixture(const std::string& name) { return read_file(folder + name); }

std::vector<float> expected_of(const std::string& name) {
  const std::string bytes = bytes_of_fixture(name + ".f32");
  std::vector<float> samples(bytes.size() / sizeof(float));
  std::memcpy(samples.data(), bytes.data(), bytes.size());
  return samples;
}

float farthest(const std::vector<float>& a, const std::vector<float>& b) {
  float most = a.size() == b.size() ? 0.0F : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
  }
  return most;
}

bool needs_ffmpeg(const std::string& name) {
  return name.ends_with(".m4a") || name.ends_with(".webm") || name.ends_with(".g722");
}

bool have_ffmpeg() {
  static const bool have = std::system("ffmpeg -version >/dev/null 2>&1") == 0;
  return have;
}

Faulted fault_of_bytes(const std::string& bytes) {
  const TestFolder scratch;
  return fault_of([&] { read_whole(*open_audio({.path = scratch.write("a.bin", bytes)})); });
}

class Reference : public testing::TestWithParam<nlohmann::json> {};

TEST_P(Reference, IsReadAsOthersReadIt) {
  const auto& entry = GetParam();
  const std::string name = entry["name"];
  if (needs_ffmpeg(name) && !have_ffmpeg()) GTEST_SKIP() << "the program ffmpeg is not here";
  const auto file = open_audio({.path = folder + name});
  EXPECT_EQ(file->info().format, entry["format"].get<std::string>());
  EXPECT_EQ(file->info().frames, entry["frames"].get<int64_t>());
  EXPECT_EQ(file->info().channels, entry["channels"].get<int>());
  EXPECT_EQ(file->info().sample_rate, entry["sample_rate"].get<int>());
  EXPECT_LE(farthest(read_whole(*file), expected_of(name)), entry["tolerance"].get<float>());
}

// Decoders that start in the middle, or libraries whose seeks miss, show here.
TEST_P(Reference, IsReadInPartsAnywhere) {
  const auto& entry = GetParam();
  const std::string name = entry["name"];
  if (needs_ffmpeg(name) && !have_ffmpeg()) GTEST_SKIP() << "the program ffmpeg is not here";
  const auto expected = expected_of(name);
  const auto file = open_audio({.path = folder + name});
  std::mt19937 random(3);
  size_t first = 0, count = 0;
  for (int i = 0; i < 60; ++i) {
    // Every third part follows on the one before.
    first =
        i % 3 == 1 && first + count < expected.size() ? first + count : random() % expected.size();
    count = 1 + random() % std::min<size_t>(expected.size() - first, 300);
    const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(first);
    const std::vector<float> part(begin, begin + static_cast<std::ptrdiff_t>(count));
    ASSERT_LE(
        farthest(read_part(*file, static_cast<int64_t>(first), static_cast<int64_t>(count)), part),
        entry["tolerance"].get<float>())
        << count << " frames from " << first;
  }
}

TEST_P(Reference, IsReadFromWithinATar) {
  const std::string name = GetParam()["name"];
  if (needs_ffmpeg(name) && !have_ffmpeg()) GTEST_SKIP() << "the program ffmpeg is not here";
  const TestFolder scratch;
  const std::string bytes = bytes_of_fixture(name);
  // G.722 is known by its name alone.
  const std::string tar = scratch.write(name.ends_with(".g722") ? "all.g722" : "all.tar",
                                        std::string(512, 'x') + bytes + std::string(1024, 'y'));
  const auto file =
      open_audio({.path = tar, .offset = 512, .size = static_cast<int64_t>(bytes.size())});
  EXPECT_LE(farthest(read_whole(*file), expected_of(name)), GetParam()["tolerance"].get<float>());
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Reference,
    testing::ValuesIn(nlohmann::json::parse(bytes_of_fixture("fixtures.json"))["files"]
                          .get<std::vector<nlohmann::json>>()),
    [](const auto& entry) {
      std::string name = entry.param["name"].template get<std::string>();
      std::ranges::replace(name, '.', '_');
      return name;
    });

TEST(Sndfile, CallsCutFilesTruncated) {
  for (const char* const name :
       {"tone.flac", "tone.aiff", "tone.ogg", "tone.mp3", "compressed.wav"}) {
    const std::string bytes = bytes_of_fixture(name);
    EXPECT_EQ(fault_of_bytes(bytes.substr(0, bytes.size() * 3 / 4)), "truncated") << name;
  }
}

TEST(RealFfmpeg, CallsCutFilesTruncated) {
  if (!have_ffmpeg()) GTEST_SKIP() << "the program ffmpeg is not here";
  const std::string webm = bytes_of_fixture("tone.webm");
  EXPECT_EQ(fault_of_bytes(webm.substr(0, webm.size() * 3 / 4)), "truncated");
  const std::string m4a = bytes_of_fixture("tone.m4a");
  const Faulted fault = fault_of_bytes(m4a.substr(0, m4a.size() / 2));
  EXPECT_EQ(fault, "not audio") << "the part that tells how to read it stands at the end";
  EXPECT_FALSE(contains(fault.sentence, "/dev/fd")) << fault.sentence;
}

TEST(Sndfile, CallsDamagedFilesTruncated) {
  std::string bytes = bytes_of_fixture("tone.flac");
  bytes.replace(bytes.size() - 600, 300, std::string(300, '\0'));
  EXPECT_EQ(fault_of_bytes(bytes), "truncated");
}

TEST(Sndfile, KeepsToTheLimits) {
  const auto fault = [](const AudioLimits& limits) {
    return fault_of([&] { open_audio({.path = folder + "tone.flac"}, {.limits = limits}); });
  };
  EXPECT_EQ(fault({.max_seconds = 0.1}), "too long");
  EXPECT_EQ(fault({.max_channels = 1}), "bad channels");
  EXPECT_EQ(fault({.min_rate = 16001}), "bad rate");
  EXPECT_EQ(fault({.max_rate = 15999}), "bad rate");
  EXPECT_EQ(fault_of([] {
              open_audio({.path = folder + "streamed.flac"}, {.limits = {.max_seconds = 0.1}});
            }),
            "too long");
}

TEST(Sndfile, RefusesSamplesThatAreNoNumbers) {
  const TestFolder scratch;
  for (const int channels : {1, 2}) {
    const std::string path = scratch.write(
        "a.wav", riff(format_chunk({.tag = 3, .channels = channels, .bits = 32}) +
                      chunk("data", raw_all(std::vector<float>{0.0F, NAN, 0.0F, 0.0F}))));
    const auto file = open_audio({.path = path}, {.native = false});
    EXPECT_EQ(fault_of([&] { read_whole(*file); }), "not finite");
  }
}

// A minute of FLAC: more than libraries read ahead.
std::string long_flac() {
  const TestFolder scratch;
  const std::string path = (scratch / "long.flac").string();
  std::vector<float> noise(60 * 16000);
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<float>(i * i % 1009) / 1010;
  write_flac(path, noise, 1, 16000);
  return read_file(path);
}

TEST(Sndfile, PassesOnThatTheDiskFailed) {
  const auto source = std::make_shared<TestBytes>(long_flac());
  const auto file = open_with_sndfile(source, {});
  ASSERT_TRUE(file);
  source->fails = true;
  EXPECT_EQ(fault_of([&] { read_whole(*file); }), "unreadable");
  EXPECT_EQ(fault_of([&] { open_with_sndfile(source, {}); }), "unreadable");
}

TEST(Sndfile, SeeksInsteadOfReadingThrough) {
  const auto source = std::make_shared<TestBytes>(long_flac());
  const auto file = open_with_sndfile(source, {});
  for (const int64_t first : {100, 500'000, 950'000}) {
    source->bytes_read = 0;
    read_part(*file, first, 100);
    EXPECT_LT(source->bytes_read, source->size() / 4) << first;
  }
}

std::string untagged() { return bytes_of_fixture("untagged.mp3"); }

std::optional<MpegTag> tag_of(const std::string& bytes) {
  TestBytes source(bytes);
  return find_mpeg_tag(source);
}

TEST(Mpeg, KnowsWhetherTheFileTellsItsLength) {
  EXPECT_TRUE(tag_of(bytes_of_fixture("tone.mp3"))->tells_length);
  EXPECT_FALSE(tag_of(untagged())->tells_length);
  EXPECT_FALSE(tag_of("fLaC and more"));
  EXPECT_FALSE(tag_of(""));
  EXPECT_FALSE(tag_of("\xFF"));
}

TEST(Mpeg, StepsOverTagsBeforeAndAfter) {
  const auto expected = expected_of("untagged.mp3");
  const std::string id3 = std::string("ID3\x04\0\0\0\0\0\x20", 10) + std::string(32, 'i');
  for (const std::string& bytes :
       {id3 + untagged(), id3 + std::string(100, '\0') + untagged(),
        untagged() + "TAG" + std::string(125, 't'), untagged() + untagged().substr(0, 50)}) {
    const auto file = open_mpeg(std::make_shared<TestBytes>(bytes), {});
    ASSERT_TRUE(file);
    EXPECT_LE(farthest(read_whole(*file), expected), 1e-4F);
  }
}

TEST(Mpeg, LeavesFlacBehindAnId3TagToLibsndfile) {
  const std::string id3 = std::string("ID3\x04\0\0\0\0\0\x20", 10) + std::string(32, 'i');
  EXPECT_EQ(open_mpeg(std::make_shared<TestBytes>(id3 + bytes_of_fixture("tone.flac")), {}),
            nullptr);
  const TestFolder scratch;
  const auto file = open_audio({.path = scratch.write("a", id3 + bytes_of_fixture("tone.flac"))});
  EXPECT_EQ(file->info().format, "flac");
}

TEST(Mpeg, KeepsToTheLimits) {
  const auto fault = [](const AudioLimits& limits) {
    return fault_of([&] { open_audio({.path = folder + "untagged.mp3"}, {.limits = limits}); });
  };
  EXPECT_EQ(fault({.max_seconds = 0.1}), "too long");
  EXPECT_EQ(fault({.max_channels = 1}), "bad channels");
  EXPECT_EQ(fault({.max_rate = 15999}), "bad rate");
}

TEST(Mpeg, CallsDamageInTheMiddleTruncated) {
  std::string bytes = bytes_of_fixture("tone.mp3");
  bytes.replace(bytes.size() / 2, 500, std::string(500, '\0'));
  EXPECT_EQ(fault_of_bytes(bytes), "truncated");
}

TEST(Mpeg, PassesOnThatTheDiskFailed) {
  std::string sound;
  for (int i = 0; i < 100; ++i) sound += untagged();
  const auto source = std::make_shared<TestBytes>(sound);
  const auto file = open_mpeg(source, {});
  ASSERT_TRUE(file);
  source->fails = true;
  EXPECT_EQ(fault_of([&] { read_part(*file, 100'000, 1000); }), "unreadable");
}

TEST(Mpeg, SeeksInsteadOfReadingThrough) {
  std::string sound;
  for (int i = 0; i < 200; ++i) sound += untagged();
  const auto source = std::make_shared<TestBytes>(sound);
  const auto file = open_mpeg(source, {});
  source->bytes_read = 0;
  read_part(*file, file->info().frames - 5000, 100);
  EXPECT_LT(source->bytes_read, source->size() / 4);
}

}  // namespace
}  // namespace tandem::tests
