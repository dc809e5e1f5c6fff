#include "data/corpus/clip_cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/corpus/clip_index.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

std::vector<float> numbers(int count, float first) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return values;
}

std::vector<float> read(const ClipCache& cache, uint64_t key) {
  const auto entry = cache.find(key);
  if (!entry) return {};
  std::vector<float> values(static_cast<size_t>(entry->rows * entry->columns));
  cache.read(*entry, values.data(), entry->columns);
  return values;
}

class Cache : public ::testing::Test {
 protected:
  void fill(int records) {
    ClipCache cache = ClipCache::open_for_writing(path_);
    for (int i = 0; i < records; ++i)
      cache.add(static_cast<uint64_t>(i), 2, 3 + i, numbers(2 * (3 + i), 100.0f * i).data());
  }
  TestFolder folder_;
  std::string path_ = (folder_ / "a.mels").string();
};

}  // namespace

TEST_F(Cache, GivesBackWhatWasWrittenAndGoesOn) {
  fill(5);
  {
    ClipCache cache = ClipCache::open_for_writing(path_);
    EXPECT_EQ(cache.size(), 5u);
    cache.add(77, 1, 2, numbers(2, 7).data());
  }
  const ClipCache cache = ClipCache::open(path_);
  EXPECT_EQ(cache.size(), 6u);
  EXPECT_EQ(read(cache, 4), numbers(14, 400));
  EXPECT_EQ(read(cache, 77), numbers(2, 7));
  EXPECT_FALSE(cache.find(78));
}

TEST_F(Cache, ATornEndIsCutOffAndTheRestUsed) {
  fill(5);
  const auto whole = std::filesystem::file_size(path_);
  for (const int cut : {1, 20, 60}) {
    fill(5);
    std::filesystem::resize_file(path_, whole - static_cast<uintmax_t>(cut));
    ClipCache cache = ClipCache::open_for_writing(path_);
    EXPECT_EQ(cache.size(), 4u);
    cache.add(4, 2, 7, numbers(14, 400).data());
    EXPECT_EQ(read(cache, 4), numbers(14, 400));
  }
}

TEST_F(Cache, DamageIsNoticed) {
  fill(3);
  std::string bytes = contents(path_);
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  put(path_, bytes);
  const ClipCache cache = ClipCache::open(path_);
  EXPECT_EQ(thrown_by([&] { read(cache, 2); }).kind, "corrupt");
  put(path_, "something else entirely");
  EXPECT_EQ(thrown_by([&] { ClipCache::open(path_); }).kind, "corrupt");
  EXPECT_EQ(thrown_by([&] { ClipCache::open((folder_ / "none").string()); }).kind, "io");
  EXPECT_EQ(thrown_by([&] { ClipCache::open_for_writing((folder_ / "no/where").string()); }).kind,
            "io");
}

TEST(ClipCacheKey, FollowsTheContentAndTheRecipe) {
  const Clip clip{.path = "a.wav", .bytes = 10, .modified = 5, .frames = 100};
  const auto key = [](const Clip& of, uint64_t recipe) {
    return clip_cache_key(ClipIndex::from({of}, "")[0], recipe);
  };
  EXPECT_EQ(key(clip, 1), key(clip, 1));
  EXPECT_NE(key(clip, 1), key(clip, 2));
  Clip other = clip;
  other.modified = 6;
  EXPECT_NE(key(other, 1), key(clip, 1));
  Clip known = clip, moved = clip;
  known.fingerprint = moved.fingerprint = 99;
  moved.path = "b.wav";
  moved.modified = 7;
  EXPECT_EQ(key(known, 1), key(moved, 1)) << "the same sound elsewhere";
}

}  // namespace tandem::tests
