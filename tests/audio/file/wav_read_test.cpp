#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "audio/file/wav_bytes.h"

namespace tandem::tests {
namespace {

using namespace std::string_literals;

// One sample as the formats define it, without any cleverness.
double plain_sample(StoredAs stored, const std::string& bytes, size_t place) {
  const auto at = [&](size_t i) {
    return static_cast<int64_t>(static_cast<unsigned char>(bytes[place + i]));
  };
  switch (stored) {
    case StoredAs::uint8: return static_cast<double>(at(0) - 128) / 128;
    case StoredAs::int16: return static_cast<int16_t>(at(0) | at(1) << 8) / 32768.0;
    case StoredAs::int24: {
      const int64_t number = at(0) | at(1) << 8 | at(2) << 16;
      return static_cast<double>(number >= 1 << 23 ? number - (1 << 24) : number) / (1 << 23);
    }
    case StoredAs::int32: {
      const auto number = static_cast<int32_t>(at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24);
      return static_cast<double>(static_cast<float>(number)) / 2147483648.0;
    }
    case StoredAs::float32: {
      float number;
      std::memcpy(&number, bytes.data() + place, 4);
      return number;
    }
    case StoredAs::float64: {
      double number;
      std::memcpy(&number, bytes.data() + place, 8);
      return static_cast<float>(number);
    }
    default: return 0;
  }
}

std::vector<float> plain_mono(StoredAs stored, const std::string& bytes, size_t channels) {
  const auto size = static_cast<size_t>(bytes_of(stored));
  std::vector<float> mono(bytes.size() / size / channels);
  for (size_t i = 0; i < mono.size(); ++i) {
    double sum = 0;
    for (size_t c = 0; c < channels; ++c) {
      sum += plain_sample(stored, bytes, (i * channels + c) * size);
    }
    mono[i] = static_cast<float>(sum / static_cast<double>(channels));
  }
  return mono;
}

struct Way {
  StoredAs stored;
  int tag, bits;
};
const Way ways[] = {{StoredAs::uint8, 1, 8},    {StoredAs::int16, 1, 16},
                    {StoredAs::int24, 1, 24},   {StoredAs::int32, 1, 32},
                    {StoredAs::float32, 3, 32}, {StoredAs::float64, 3, 64}};

std::string random_samples(const Way& way, size_t count, std::mt19937& random) {
  std::uniform_real_distribution<double> number(-1.5, 1.5);
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    if (way.tag == 3) {
      bytes += way.bits == 32 ? raw(static_cast<float>(number(random))) : raw(number(random));
    } else {
      const auto bits = static_cast<uint32_t>(random());
      bytes += raw(bits).substr(0, static_cast<size_t>(way.bits / 8));
    }
  }
  return bytes;
}

TEST(Wav, ReadsAnyPartOfAnyFormatAsThePlainDefinitionDoes) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const Way& way = ways[random() % std::size(ways)];
    const size_t channels = 1 + random() % 9, frames = 1 + random() % 300;
    const std::string samples = random_samples(way, frames * channels, random);
    const Format format = {
        .tag = way.tag, .channels = static_cast<int>(channels), .bits = way.bits};
    const std::string note =
        random() % 2 == 0 ? chunk("LIST", std::string(random() % 50, 'n')) : "";
    const auto file = open_bytes(std::make_shared<TestBytes>(
        riff(note + format_chunk(format) + chunk("data", samples) + note)));
    ASSERT_EQ(file->info().frames, static_cast<int64_t>(frames));
    const auto expected = plain_mono(way.stored, samples, channels);
    ASSERT_EQ(read_whole(*file), expected) << to_string(way.stored) << " " << channels;
    const size_t first = random() % frames, count = random() % (frames - first + 1);
    const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(first);
    ASSERT_EQ(read_part(*file, static_cast<int64_t>(first), static_cast<int64_t>(count)),
              std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count)));
  }
}

TEST(Wav, ReadsFilesOfManyBlocks) {
  std::mt19937 random(8);
  for (const Way& way : ways) {
    const std::string samples = random_samples(way, 3 * 70'001, random);
    const auto file = open_bytes(std::make_shared<TestBytes>(riff(
        format_chunk({.tag = way.tag, .channels = 3, .bits = way.bits}) + chunk("data", samples))));
    EXPECT_EQ(read_whole(*file), plain_mono(way.stored, samples, 3)) << to_string(way.stored);
  }
}

// Values of ITU-T G.711: both ends, the smallest steps, and one between.
TEST(Wav, ExpandsTheCompandedFormats) {
  const auto read = [](int tag, const std::string& codes) {
    auto samples = read_wav(riff(format_chunk({.tag = tag, .bits = 8}) + chunk("data", codes)));
    for (float& sample : samples) sample *= 32768;
    return samples;
  };
  EXPECT_EQ(read(7, "\x80\xFF\x7F\x01\xC5"s), (std::vector<float>{32124, 0, 0, -31100, 1564}));
  EXPECT_EQ(read(6, "\xD5\x55\xAA\x2A\x80"s), (std::vector<float>{8, -8, 32256, -32256, 5504}));
}

TEST(Wav, SaysWhatTheFileIs) {
  const auto file = open_bytes(std::make_shared<TestBytes>(
      wav16(std::vector<int16_t>(44100), {.channels = 2, .rate = 22050})));
  EXPECT_EQ(file->info().frames, 22050);
  EXPECT_EQ(file->info().channels, 2);
  EXPECT_EQ(file->info().sample_rate, 22050);
  EXPECT_EQ(file->info().format, "wav pcm16");
  EXPECT_TRUE(file->info().native);
  EXPECT_DOUBLE_EQ(file->info().seconds(), 1.0);
}

TEST(Wav, ReadsAPartAtConstantCost) {
  const auto source = std::make_shared<TestBytes>(wav16(std::vector<int16_t>(1 << 20)));
  const auto file = open_bytes(source);
  for (const int64_t first : {0, 500'000, (1 << 20) - 1000}) {
    source->reads = source->bytes_read = 0;
    read_part(*file, first, 1000);
    EXPECT_EQ(source->reads, 1) << first;
    EXPECT_EQ(source->bytes_read, 2000) << first;
  }
}

TEST(Wav, CallsAFileThatShrinksTruncated) {
  const auto source = std::make_shared<TestBytes>(wav16(std::vector<int16_t>(100)));
  const auto file = open_bytes(source);
  source->cut(44 + 20);
  EXPECT_EQ(read_part(*file, 0, 10).size(), 10U);
  const Faulted fault = fault_of([&] { read_part(*file, 5, 10); });
  EXPECT_EQ(fault, "truncated");
  EXPECT_EQ(fault.sentence, "`test.wav` ends at frame 10 of 100");
}

TEST(Wav, RefusesSamplesThatAreNoNumbers) {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), infinite, -infinite}) {
    for (const int channels : {1, 2, 3}) {
      for (const size_t place : {size_t{0}, size_t{29}}) {
        std::vector<float> samples(30, 0.5F);
        samples[place] = bad;
        const Format format = {.tag = 3, .channels = channels, .bits = 32};
        const auto file = open_bytes(std::make_shared<TestBytes>(
            riff(format_chunk(format) + chunk("data", raw_all(samples)))));
        EXPECT_EQ(fault_of([&] { read_whole(*file); }), "not finite") << bad << " " << channels;
        EXPECT_EQ(fault_of([&] { read_part(*file, 3, 4); }), "none") << "only the part counts";
      }
    }
  }
  const std::string large = riff(format_chunk({.tag = 3, .bits = 64}) + chunk("data", raw(1e300)));
  EXPECT_EQ(fault_of([&] { read_wav(large); }), "not finite") << "too large for a float";
}

TEST(Wav, PassesOnThatTheDiskFailed) {
  const auto source = std::make_shared<TestBytes>(wav16(std::vector<int16_t>(100)));
  const auto file = open_bytes(source);
  source->fails = true;
  EXPECT_EQ(fault_of([&] { read_whole(*file); }), "unreadable");
}

TEST(Wav, TakesAPartBeyondTheFileForOurOwnMistake) {
  const auto file = open_bytes(std::make_shared<TestBytes>(wav16(std::vector<int16_t>(100))));
  float out[200];
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  using Part = std::pair<int64_t, int64_t>;
  for (const auto& [first, count] :
       {Part{-1, 2}, Part{0, 101}, Part{100, 1}, Part{50, -1}, Part{50, most}, Part{most, 1}}) {
    try {
      file->read_mono(first, count, out);
      ADD_FAILURE() << first << " " << count;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
    }
  }
  file->read_mono(100, 0, out);
}

TEST(Wav, RefusesWhatTheLimitsForbid) {
  const auto fault = [](const Format& format, size_t samples, const AudioLimits& limits = {}) {
    return fault_of([&] {
      open_bytes(std::make_shared<TestBytes>(wav16(std::vector<int16_t>(samples), format)), limits);
    });
  };
  EXPECT_EQ(fault({.channels = 33}, 33), "bad channels");
  EXPECT_EQ(fault({.channels = 32}, 32), "none");
  EXPECT_EQ(fault({.channels = 0}, 10), "bad channels");
  EXPECT_EQ(fault({.channels = 65535, .block = 0}, 10), "bad channels");
  EXPECT_EQ(fault({.rate = 0}, 10), "bad rate");
  EXPECT_EQ(fault({.rate = 999}, 10), "bad rate");
  EXPECT_EQ(fault({.rate = 0xFFFFFFFF}, 10), "bad rate");
  EXPECT_EQ(fault({.rate = 192000}, 10), "none");
  EXPECT_EQ(fault({}, 0), "empty");
  EXPECT_EQ(fault({.channels = 8}, 7), "empty") << "less than one frame";
  EXPECT_EQ(fault({.rate = 1000}, 3001, {.max_seconds = 3}), "too long");
  EXPECT_EQ(fault({.rate = 1000}, 3000, {.max_seconds = 3}), "none");
}

}  // namespace
}  // namespace tandem::tests
