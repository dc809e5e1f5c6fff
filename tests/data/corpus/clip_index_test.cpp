#include "data/corpus/clip_index.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "data/corpus/corpus_files.h"
#include "data/corpus/index_format.h"
#include "support/captured.h"

namespace tandem {
namespace {

using tests::read_text;
using tests::write_text;

std::vector<Clip> some_clips(int count) {
  std::vector<Clip> clips(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    Clip& clip = clips[static_cast<size_t>(i)];
    clip.id = "clip-" + std::to_string(i);
    clip.text = "the text of clip " + std::to_string(i);
    clip.speaker = i % 2 ? "odd" : "even";
    clip.language = "en";
    clip.path = "wavs/" + clip.id + ".wav";
    clip.offset = i;
    clip.bytes = 1000 + i;
    clip.modified = -5;
    clip.frames = 22050 * (1 + i % 10);
    clip.sample_rate = 22050;
    clip.channels = 1;
    clip.tokens = 17;
    clip.first_frame = 3;
    clip.part = 1;
    clip.fingerprint = ~uint64_t{0};
  }
  return clips;
}

TEST(ClipIndex, GivesBackWhatWasWritten) {
  const TestFolder folder;
  const std::string path = (folder / "c.index").string();
  ClipIndex::write(path, some_clips(3), folder.path().string());
  const ClipIndex index = ClipIndex::open(path);
  ASSERT_EQ(index.size(), 3);
  EXPECT_EQ(index.root(), folder.path().string());
  const ClipView clip = index[1];
  EXPECT_EQ(clip.id, "clip-1");
  EXPECT_EQ(clip.text, "the text of clip 1");
  EXPECT_EQ(clip.speaker, "odd");
  EXPECT_EQ(clip.language, "en");
  EXPECT_EQ(clip.path, "wavs/clip-1.wav");
  EXPECT_EQ(clip.offset, 1);
  EXPECT_EQ(clip.bytes, 1001);
  EXPECT_EQ(clip.modified, -5);
  EXPECT_EQ(clip.frames, 44100);
  EXPECT_EQ(clip.seconds(), 2);
  EXPECT_EQ(clip.channels, 1);
  EXPECT_EQ(clip.tokens, 17);
  EXPECT_EQ(clip.first_frame, 3);
  EXPECT_EQ(clip.part, 1);
  EXPECT_EQ(clip.fingerprint, ~uint64_t{0});
  EXPECT_EQ(index.full_path(1), (folder / "wavs/clip-1.wav").string());
}

TEST(ClipIndex, HoldsRowsFromMemoryAndNone) {
  const ClipIndex index = ClipIndex::from(some_clips(2), "/data");
  EXPECT_EQ(index.full_path(0), "/data/wavs/clip-0.wav");
  EXPECT_EQ(ClipIndex::from({}, "").size(), 0);
  EXPECT_EQ(ClipIndex::from({Clip{}}, "")[0].seconds(), 0) << "not prepared";
  EXPECT_EQ(error_of([&] { index[2]; }).what(), std::string("clip 2 of 2 was asked for"));
  EXPECT_EQ(error_of([&] { index[-1]; }).kind(), ErrorKind::internal);
}

TEST(ClipIndex, MovesWithItsFolder) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "a/sub");
  ClipIndex::write((folder / "a/c.index").string(), some_clips(1), (folder / "a").string());
  ClipIndex::write((folder / "a/sub/c.index").string(), some_clips(1),
                   (folder / "a").string() + "/");
  ClipIndex::write((folder / "a/far.index").string(), some_clips(1), "/data");
  std::filesystem::rename(folder / "a", folder / "b");
  EXPECT_EQ(ClipIndex::open((folder / "b/c.index").string()).root(), (folder / "b").string());
  EXPECT_EQ(ClipIndex::open((folder / "b/sub/c.index").string()).root(), (folder / "b").string());
  EXPECT_EQ(ClipIndex::open((folder / "b/far.index").string()).root(), "/data");
}

TEST(ClipIndex, KeepsAbsolutePaths) {
  std::vector<Clip> clips = some_clips(1);
  clips[0].path = "/elsewhere/a.wav";
  EXPECT_EQ(ClipIndex::from(clips, "/data").full_path(0), "/elsewhere/a.wav");
}

std::string sentence_of(std::string bytes) {
  const Error error = error_of([&] { ClipIndex::parse(bytes, "x.index"); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  return error.what();
}

TEST(ClipIndex, SaysWhyItCannotBeRead) {
  const std::string good = index_bytes(some_clips(2), "/data");
  EXPECT_EQ(sentence_of(""), "the index `x.index` has 0 bytes: it is cut short");
  EXPECT_EQ(sentence_of(std::string(200, 'x')),
            "the index `x.index` does not begin as an index does");
  std::string version = good;
  version[12] = 9;
  EXPECT_EQ(sentence_of(version),
            "the index `x.index` has version 9; this program reads version 1");
  std::string order = good;
  std::swap(order[8], order[11]);
  EXPECT_EQ(sentence_of(order),
            "the index `x.index` was written by a machine of another byte order");
  EXPECT_EQ(sentence_of(good.substr(0, good.size() - 8)),
            "the index `x.index` has " + std::to_string(good.size() - 8) + " bytes and claims " +
                std::to_string(good.size()) + ": it is cut short or damaged");
  std::string head = good;
  head[sizeof(IndexHeader) + 3] ^= 1;
  EXPECT_EQ(sentence_of(head), "the index `x.index` is damaged: the sum of its header is wrong");
  std::string pool = good;
  pool[pool.size() - 9] ^= 1;
  EXPECT_EQ(sentence_of(pool), "the index `x.index` is damaged: the sum of section 15 is wrong");
}

TEST(ClipIndex, NoticesEveryFlippedByte) {
  const std::string good = index_bytes(some_clips(2), "/data");
  int64_t padding = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    try {
      ClipIndex::parse(bad, "x");
      ++padding;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    }
  }
  EXPECT_LT(padding, 8 * section_count) << "only what fills up to eight bytes is under no sum";
}

// Sums that are right do not make a row right.
TEST(ClipIndex, ChecksRowsBehindRightSums) {
  const std::string good = index_bytes(some_clips(2), "/data");
  const auto with = [&](IndexSection section, uint64_t value) {
    std::string bytes = good;
    IndexEntry entry;
    std::memcpy(&entry, bytes.data() + sizeof(IndexHeader) + section * sizeof entry, sizeof entry);
    std::memcpy(bytes.data() + entry.offset, &value, column_width(section));
    EXPECT_TRUE(seal_index(bytes));
    return bytes;
  };
  EXPECT_EQ(ClipIndex::parse(with(tokens_column, 5), "x")[0].tokens, 5);
  EXPECT_EQ(sentence_of(with(path_column, uint64_t{1} << 40)),
            "the index `x.index` is damaged: a value in section 4 cannot be");
  EXPECT_EQ(sentence_of(with(id_column, longest_string)),
            "the index `x.index` is damaged: a value in section 0 cannot be");
  EXPECT_EQ(sentence_of(with(frames_column, ~uint64_t{0})),
            "the index `x.index` is damaged: a value in section 8 cannot be");
  EXPECT_EQ(sentence_of(with(sample_rate_column, 0x80000000)),
            "the index `x.index` is damaged: a value in section 11 cannot be");
  std::string root = good;
  const uint64_t far = uint64_t{1} << 60;
  std::memcpy(root.data() + offsetof(IndexHeader, root), &far, sizeof far);
  seal_index(root);
  EXPECT_EQ(sentence_of(root), "the index `x.index` is damaged: its root cannot be");
  std::string count = good;
  const uint64_t many = uint64_t{1} << 61;
  std::memcpy(count.data() + offsetof(IndexHeader, clips), &many, sizeof many);
  seal_index(count);
  EXPECT_EQ(sentence_of(count), "the index `x.index` is damaged: section 0 lies wrong");
}

TEST(ClipIndex, NamesAFileThatIsNotThere) {
  const TestFolder folder;
  EXPECT_EQ(error_of([] { ClipIndex::open("/nowhere.index"); }).kind(), ErrorKind::io);
  EXPECT_EQ(error_of([&] { ClipIndex::open(folder.path().string()); }).kind(), ErrorKind::io);
  write_text(folder / "empty.index", "");
  EXPECT_EQ(error_of([&] { ClipIndex::open((folder / "empty.index").string()); }).kind(),
            ErrorKind::corrupt);
}

TEST(ClipIndex, RefusesATextThatDoesNotFit) {
  std::vector<Clip> clips(1);
  clips[0].text.assign(longest_string + 1, 'x');
  EXPECT_EQ(error_of([&] { index_bytes(clips, ""); }).kind(), ErrorKind::data);
}

TEST(ClipIndex, OpensAHundredThousandClipsAtOnce) {
  const TestFolder folder;
  const std::string path = (folder / "big.index").string();
  ClipIndex::write(path, some_clips(100000), folder.path().string());
  const auto start = std::chrono::steady_clock::now();
  const ClipIndex index = ClipIndex::open(path);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(index.size(), 100000);
  EXPECT_EQ(index[99999].id, "clip-99999");
  std::printf("100,000 clips, %.1f MB, open and checked in %.1f ms\n",
              static_cast<double>(std::filesystem::file_size(path)) / 1e6, 1000 * seconds);
  EXPECT_LT(seconds, 5);
}

}  // namespace
}  // namespace tandem
