#include "audio/file/wav_layout.h"

#include <gtest/gtest.h>

#include "audio/file/wav_bytes.h"

namespace tandem::tests {
namespace {

const std::vector<int16_t> four = {1, -2, 3, -4};
const std::string four_bytes = raw_all(four);
const std::vector<float> four_read = {1 / 32768.0F, -2 / 32768.0F, 3 / 32768.0F, -4 / 32768.0F};
const std::string pcm16 = format_chunk({});

std::string ds64(uint64_t riff_size, uint64_t data_size) {
  return chunk("ds64", raw(riff_size) + raw(data_size) + raw<uint64_t>(0) + raw<uint32_t>(0));
}

TEST(WavLayout, FindsTheSamplesOfAPlainFile) {
  const WavLayout layout = layout_of(wav16(four, {.channels = 2, .rate = 22050}));
  EXPECT_EQ(layout.stored, StoredAs::int16);
  EXPECT_EQ(layout.channels, 2);
  EXPECT_EQ(layout.sample_rate, 22050);
  EXPECT_EQ(layout.data_offset, 44);
  EXPECT_EQ(layout.frames(), 2);
}

TEST(WavLayout, KnowsEveryWayOfStoring) {
  const auto stored = [](const Format& format) {
    return layout_of(riff(format_chunk(format) + chunk("data", std::string(64, '\0')))).stored;
  };
  EXPECT_EQ(stored({.tag = 1, .bits = 8}), StoredAs::uint8);
  EXPECT_EQ(stored({.tag = 1, .bits = 12}), StoredAs::int16);
  EXPECT_EQ(stored({.tag = 1, .bits = 16}), StoredAs::int16);
  EXPECT_EQ(stored({.tag = 1, .bits = 20}), StoredAs::int24);
  EXPECT_EQ(stored({.tag = 1, .bits = 24}), StoredAs::int24);
  EXPECT_EQ(stored({.tag = 1, .bits = 24, .block = 4}), StoredAs::int32);
  EXPECT_EQ(stored({.tag = 1, .bits = 32}), StoredAs::int32);
  EXPECT_EQ(stored({.tag = 3, .bits = 32}), StoredAs::float32);
  EXPECT_EQ(stored({.tag = 3, .bits = 64}), StoredAs::float64);
  EXPECT_EQ(stored({.tag = 6, .bits = 8}), StoredAs::alaw);
  EXPECT_EQ(stored({.tag = 7, .bits = 8}), StoredAs::mulaw);
  EXPECT_EQ(stored({.tag = 0xFFFE, .bits = 24, .subformat = 1}), StoredAs::int24);
  EXPECT_EQ(stored({.tag = 0xFFFE, .bits = 32, .subformat = 3}), StoredAs::float32);
}

TEST(WavLayout, LeavesWhatItDoesNotKnowToOthers) {
  const auto stored = [](const Format& format) {
    return layout_of(riff(format_chunk(format) + chunk("data", std::string(64, '\0')))).stored;
  };
  EXPECT_EQ(stored({.tag = 0x11, .bits = 4, .block = 256}), StoredAs::other);
  EXPECT_EQ(stored({.tag = 1, .bits = 0}), StoredAs::other);
  EXPECT_EQ(stored({.tag = 1, .bits = 64}), StoredAs::other);
  EXPECT_EQ(stored({.tag = 3, .bits = 16}), StoredAs::other);
  EXPECT_EQ(stored({.tag = 1, .channels = 0}), StoredAs::other);
  EXPECT_EQ(stored({.tag = 1, .channels = 2, .block = 5}), StoredAs::other);
  EXPECT_EQ(stored({.tag = 1, .bits = 16, .block = 1}), StoredAs::other);
}

TEST(WavLayout, TakesABlockAlignOfZeroForNone) {
  EXPECT_EQ(read_wav(wav16(four, {.block = 0})), four_read);
}

TEST(WavLayout, WalksOverChunksBeforeBetweenAndAfter) {
  const std::string data = chunk("data", four_bytes);
  const std::string bext = chunk("bext", std::string(602, 'b')), odd = chunk("LIST", "odd");
  EXPECT_EQ(read_wav(riff(bext + pcm16 + data)), four_read);
  EXPECT_EQ(read_wav(riff(odd + pcm16 + odd + data + odd)), four_read);
  EXPECT_EQ(read_wav(riff(data + pcm16)), four_read) << "the samples before their format";
  EXPECT_EQ(read_wav(riff(pcm16 + data + chunk("data", "xxxx"))), four_read) << "the first counts";
  EXPECT_EQ(read_wav(riff(pcm16 + data) + "rubbish"), four_read);
}

TEST(WavLayout, ForgivesAMissingPadByte) {
  const std::string unpadded = "LIST" + raw<uint32_t>(3) + "odd";
  EXPECT_EQ(read_wav(riff(pcm16 + unpadded + chunk("data", four_bytes))), four_read);
}

TEST(WavLayout, ReadsOnePageUnlessTheHeaderIsLonger) {
  std::string large =
      riff(chunk("id3 ", std::string(1 << 20, 'i')) + pcm16 + chunk("data", four_bytes));
  TestBytes source(large);
  std::vector<std::byte> head(4096);
  source.read_at(0, head);
  EXPECT_EQ(parse_wav(source, head).frames(), 4);
  EXPECT_LE(source.bytes_read, 4096 + 200) << "a picture before the samples is stepped over";

  TestBytes plain(wav16(std::vector<int16_t>(8000)));
  plain.read_at(0, head);
  parse_wav(plain, head);
  EXPECT_EQ(plain.reads, 1);
}

TEST(WavLayout, ReadsRf64AndBw64) {
  for (const char* const id : {"RF64", "BW64"}) {
    const std::string data = data_claiming(0xFFFFFFFF, four_bytes) + chunk("LIST", "after");
    const std::string file = riff(ds64(0, four_bytes.size()) + pcm16 + data, id, 0xFFFFFFFF);
    EXPECT_EQ(read_wav(file), four_read);
  }
}

TEST(WavLayout, RefusesWhatRf64PromisesBeyondTheFile) {
  for (const uint64_t size : {uint64_t{9}, uint64_t{10}, uint64_t{1} << 40, ~uint64_t{0} - 1}) {
    const std::string file =
        riff(ds64(0, size) + pcm16 + data_claiming(0xFFFFFFFF, four_bytes), "RF64", 0xFFFFFFFF);
    EXPECT_EQ(fault_of([&] { layout_of(file); }), size == 9 ? "none" : "truncated") << size;
  }
}

TEST(WavLayout, ReadsFilesWrittenToAPipeToTheirEnd) {
  for (const uint32_t size : {0U, 0xFFFFFFFFU, 0xFFFFFFDBU, 0x7FFFF000U, 0x80000000U}) {
    const int64_t whole = size == 0 ? 36 : static_cast<int64_t>(size);
    EXPECT_EQ(read_wav(riff(pcm16 + data_claiming(size, four_bytes), "RIFF", whole)), four_read);
  }
  // The last frame was not finished.
  EXPECT_EQ(read_wav(riff(pcm16 + data_claiming(0xFFFFFFFF, four_bytes + "x"), "RIFF", 0)),
            four_read);
  EXPECT_EQ(read_wav(riff(
                ds64(~uint64_t{0}, ~uint64_t{0}) + pcm16 + data_claiming(0xFFFFFFFF, four_bytes),
                "RF64", 0xFFFFFFFF)),
            four_read);
}

TEST(WavLayout, BelievesZeroSamplesWhenTheWholeSizeIsRight) {
  const std::string file = riff(pcm16 + chunk("data", "") + chunk("LIST", "notes!"));
  EXPECT_EQ(layout_of(file).frames(), 0);
}

TEST(WavLayout, IgnoresAWrongSizeOfTheWhole) {
  EXPECT_EQ(read_wav(riff(pcm16 + chunk("data", four_bytes), "RIFF", 4)), four_read);
  EXPECT_EQ(read_wav(riff(pcm16 + chunk("data", four_bytes), "RIFF", 99999)), four_read);
}

TEST(WavLayout, CallsACutFileTruncated) {
  const std::string whole = wav16(four);
  for (size_t size = 4; size < whole.size(); ++size) {
    EXPECT_EQ(fault_of([&] { layout_of(whole.substr(0, size)); }), "truncated") << size;
  }
  const Faulted cut = fault_of([&] { layout_of(whole.substr(0, 48)); });
  EXPECT_TRUE(contains(cut.sentence, "promises 8 bytes of samples, 4 are there")) << cut.sentence;
}

TEST(WavLayout, CallsAFileWithoutFormatOrSamplesNoAudio) {
  EXPECT_EQ(fault_of([] { layout_of(riff(chunk("LIST", "abcd"))); }), "not audio");
  EXPECT_EQ(fault_of([] { layout_of(riff(pcm16)); }), "not audio");
  EXPECT_EQ(fault_of([] { layout_of(riff(chunk("data", four_bytes))); }), "not audio");
  EXPECT_EQ(fault_of([] { layout_of(riff(chunk("fmt ", "short") + chunk("data", four_bytes))); }),
            "not audio");
}

TEST(WavLayout, DoesNotWalkForever) {
  std::string chunks;
  for (int i = 0; i < 20000; ++i) chunks += chunk("junk", "");
  TestBytes source(riff(chunks + pcm16 + chunk("data", four_bytes)));
  EXPECT_EQ(fault_of([&] { parse_wav(source, {}); }), "not audio");
  EXPECT_LE(source.reads, 5000);
}

}  // namespace
}  // namespace tandem::tests
