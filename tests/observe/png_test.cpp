#include "observe/png.h"

#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/crc32.h"
#include "observe/deflate.h"
#include "observe/inflate.h"
#include "observe/mel_picture.h"
#include "util/counted_random.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

uint32_t big_endian(std::string_view bytes) {
  uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

struct PngChunk {
  std::string name, data;
};

std::vector<PngChunk> chunks_of(std::string_view png) {
  EXPECT_TRUE(png.starts_with("\x89PNG\r\n\x1A\n"));
  std::vector<PngChunk> chunks;
  for (png.remove_prefix(8); png.size() >= 12;) {
    const uint32_t length = big_endian(png);
    chunks.push_back({std::string(png.substr(4, 4)), std::string(png.substr(8, length))});
    EXPECT_EQ(big_endian(png.substr(8 + length)), crc32(png.substr(4, 4 + length)));
    png.remove_prefix(12 + length);
  }
  EXPECT_TRUE(png.empty());
  return chunks;
}

std::string bytes_of_kind(int kind, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) {
    const uint64_t draw = counted_draw(1, "bytes", static_cast<uint64_t>(kind), i);
    bytes += kind == 0   ? static_cast<char>(draw)            // nothing repeats
             : kind == 1 ? static_cast<char>(draw % 2)        // short repeats
             : kind == 2 ? 'a'                                // one run
                         : static_cast<char>((i % 300) * 7);  // a distance of 300
  }
  return bytes;
}

float mel_value(int64_t band, int64_t frame) { return static_cast<float>(band + 10 * frame); }

std::vector<float> mel_values(int64_t mels, int64_t frames) {
  std::vector<float> values;
  for (int64_t band = 0; band < mels; ++band)
    for (int64_t frame = 0; frame < frames; ++frame) values.push_back(mel_value(band, frame));
  return values;
}

// Lightness as people see it, 0 to 1 (CIE L*, near enough from linear luminance).
double lightness(const Colour& colour) {
  const auto linear = [](uint8_t value) { return std::pow(value / 255.0, 2.2); };
  return std::cbrt(0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) +
                   0.0722 * linear(colour[2]));
}

}  // namespace

TEST(Deflate, GivesBackWhatWasPutIn) {
  for (int kind = 0; kind < 4; ++kind) {
    for (const size_t size : {0, 1, 2, 3, 4, 258, 259, 260, 261, 517, 5000, 40000}) {
      const std::string bytes = bytes_of_kind(kind, size), packed = deflated(bytes);
      EXPECT_EQ(FixedInflater(packed).all(), bytes) << kind << " " << size;
      EXPECT_EQ(big_endian(std::string_view(packed).substr(packed.size() - 4)), adler32(bytes));
    }
  }
}

TEST(Deflate, ReachesBackTheWholeWindowAndNotBeyond) {
  const std::string word = bytes_of_kind(0, 64);
  for (const size_t between : {32704, 32705, 40000}) {
    const std::string bytes = word + std::string(between, 'x') + word;
    EXPECT_EQ(FixedInflater(deflated(bytes)).all(), bytes) << between;
  }
}

TEST(Deflate, ShrinksWhatRepeatsAndHardlyGrowsWhatDoesNot) {
  EXPECT_LT(deflated(bytes_of_kind(2, 40000)).size(), 400U);
  EXPECT_LT(deflated(bytes_of_kind(0, 40000)).size(), 45000U);
}

TEST(Deflate, ChecksumIsThatOfTheStandard) {
  EXPECT_EQ(adler32(""), 1U);
  EXPECT_EQ(adler32("Wikipedia"), 0x11E60398U);
}

TEST(Png, HoldsSizeColoursAndPoints) {
  const Picture picture{.width = 3,
                        .height = 2,
                        .colours = {{1, 2, 3}, {4, 5, 6}, {250, 251, 252}},
                        .points = {0, 1, 2, 2, 1, 0}};
  const auto chunks = chunks_of(encode_png(picture));
  ASSERT_EQ(chunks.size(), 4U);
  EXPECT_EQ(chunks[0].name, "IHDR");
  EXPECT_EQ(chunks[0].data, std::string("\0\0\0\3\0\0\0\2\x08\x03\0\0\0", 13));
  EXPECT_EQ(chunks[1].name, "PLTE");
  EXPECT_EQ(chunks[1].data, "\1\2\3\4\5\6\xFA\xFB\xFC");
  EXPECT_EQ(chunks[2].name, "IDAT");
  EXPECT_EQ(FixedInflater(chunks[2].data).all(), std::string("\0\0\1\2\0\2\1\0", 8));
  EXPECT_EQ(chunks[3].name, "IEND");
}

TEST(Png, RefusesAPictureThatDoesNotHoldTogether) {
  const Picture good{.width = 2, .height = 1, .colours = {{0, 0, 0}}, .points = {0, 0}};
  encode_png(good);
  std::vector<Picture> bad(4, good);
  bad[0].width = 3;
  bad[1].points[1] = 1;
  bad[2].colours.clear();
  bad[3].width = bad[3].height = 0;
  bad[3].points.clear();
  for (const Picture& picture : bad)
    EXPECT_EQ(thrown_by([&] { encode_png(picture); }).sentence,
              "a picture's points do not fit its size or its colours");
}

TEST(MelPicture, HasLowBandsAtTheBottomAndTimeToTheRight) {
  const std::vector<float> values = mel_values(80, 100);
  const Picture picture = mel_picture({values, 80, 100});
  EXPECT_EQ(picture.width, 200);
  EXPECT_EQ(picture.height, 160);
  const auto at = [&](int64_t row, int64_t column) {
    return picture.points[static_cast<size_t>(row * picture.width + column)];
  };
  EXPECT_EQ(at(159, 0), 0);    // lowest band, first frame
  EXPECT_EQ(at(0, 199), 255);  // highest band, last frame
  EXPECT_GT(at(80, 150), at(80, 50));
  EXPECT_GE(at(20, 50), at(140, 50));
  EXPECT_EQ(at(80, 50), at(81, 51)) << "enlarged twice";
}

TEST(MelPicture, ThinsLongSoundsAndShowsWhatIsNotFiniteAsSilence) {
  std::vector<float> values = mel_values(10, 5000);
  values[3] = NAN;
  values[4] = INFINITY;
  const Picture picture = mel_picture({values, 10, 5000});
  EXPECT_EQ(picture.width, 1600);
  EXPECT_EQ(picture.height, 10);
  EXPECT_EQ(picture.points[static_cast<size_t>(9 * picture.width + 1)], 0);
  encode_png(picture);
}

TEST(MelPicture, OfOneValueIsAPicture) {
  const std::vector<float> flat(6, 2.5F), nothing(6, NAN);
  EXPECT_EQ(mel_picture({flat, 2, 3}).points.front(), 0);
  EXPECT_EQ(mel_picture({nothing, 2, 3}).points.front(), 0);
}

TEST(MelPicture, RefusesValuesOfAnotherSize) {
  const std::vector<float> values(6);
  EXPECT_EQ(thrown_by([&] {
              mel_picture({values, 2, 4});
            }).sentence,
            "a spectrogram of 2 bands and 4 frames has 6 values");
  EXPECT_EQ(thrown_by([&] { mel_picture({{}, 0, 0}); }).kind, "internal");
}

TEST(MelPicture, ColoursGetLighterEvenly) {
  const double whole = lightness(loudness_colour(1)) - lightness(loudness_colour(0));
  EXPECT_GT(whole, 0.5);
  for (int i = 1; i <= 10; ++i) {
    const double step =
        lightness(loudness_colour(i / 10.0)) - lightness(loudness_colour((i - 1) / 10.0));
    EXPECT_GT(step, 0.06 * whole) << i;
    EXPECT_LT(step, 0.15 * whole) << i;
  }
}

}  // namespace tandem::tests
