#include "data/order/batch_order.h"

#include <gtest/gtest.h>

#include <set>

#include "support/captured.h"

namespace tandem {
namespace {

std::vector<ClipLength> lengths_of(int count) {
  std::vector<ClipLength> lengths;
  for (int i = 0; i < count; ++i)
    lengths.push_back({.seconds = 1.0 + (i * 37 % 101) * 0.1, .tokens = 10 + i * 13 % 90});
  return lengths;
}

BatchOrder order_of(int clips, uint64_t seed = 1, int64_t batch_size = 16) {
  return {make_buckets(lengths_of(clips), {.batch_size = batch_size}), {.seed = seed}};
}

// What all ranks of a world see of an epoch, from batch `first` on, in order.
std::vector<int64_t> seen(const BatchOrder& order, int world, int64_t first, int64_t end) {
  std::vector<int64_t> clips;
  for (int64_t index = first; index < end; ++index) {
    const PlannedBatch batch = order.batch(index);
    const int64_t rows = order.buckets()[batch.bucket].rows;
    for (int rank = 0; rank < world; ++rank) {
      const Part part = part_of(rows, world, rank);
      for (int64_t row = part.first; row < part.first + part.count; ++row) {
        if (static_cast<size_t>(row) < batch.clips.size())
          clips.push_back(batch.clips[static_cast<size_t>(row)]);
      }
    }
  }
  return clips;
}

}  // namespace

TEST(PartOf, CoversTheBatchWithoutHolesAndTheLastTakesTheRest) {
  for (int64_t size = 1; size <= 40; ++size) {
    for (int replicas = 1; replicas <= size; ++replicas) {
      int64_t next = 0;
      for (int rank = 0; rank < replicas; ++rank) {
        const Part part = part_of(size, replicas, rank);
        EXPECT_EQ(part.first, next);
        const bool last = rank + 1 == replicas;
        EXPECT_EQ(part.count, size / replicas + (last ? size % replicas : 0));
        next += part.count;
      }
      EXPECT_EQ(next, size);
    }
  }
}

TEST(BatchOrder, EveryWorldAndResumePointSeesEachClipOnceInTheSameOrder) {
  for (const int clips : {1, 7, 16, 100, 1000}) {
    const BatchOrder order = order_of(clips);
    const int64_t an_epoch = order.batches_an_epoch();
    for (const int64_t epoch : {0, 1, 5}) {
      const int64_t begin = epoch * an_epoch, end = begin + an_epoch;
      const std::vector<int64_t> alone = seen(order, 1, begin, end);
      EXPECT_EQ(alone.size(), static_cast<size_t>(clips));
      EXPECT_EQ(std::set(alone.begin(), alone.end()).size(), static_cast<size_t>(clips));
      for (const int world : {1, 2, 3, 8}) {
        for (const int64_t stop : {begin, begin + 1, begin + an_epoch / 2, end - 1, end}) {
          if (stop < begin || stop > end) continue;
          std::vector<int64_t> both = seen(order, world, begin, stop);
          const BatchOrder resumed = order_of(clips);  // a new process
          const std::vector<int64_t> rest = seen(resumed, world, stop, end);
          both.insert(both.end(), rest.begin(), rest.end());
          EXPECT_EQ(both, alone) << clips << " clips, epoch " << epoch << ", world " << world
                                 << ", stopped before " << stop;
        }
      }
    }
  }
}

TEST(BatchOrder, EpochsAndSeedsDiffer) {
  const BatchOrder order = order_of(500), other = order_of(500, 2);
  const int64_t n = order.batches_an_epoch();
  EXPECT_NE(seen(order, 1, 0, n), seen(order, 1, n, 2 * n));
  EXPECT_NE(seen(order, 1, 0, n), seen(other, 1, 0, n));
}

TEST(BatchOrder, OnlyTheLastBatchOfABucketIsNotFull) {
  const BatchOrder order = order_of(1000);
  std::vector<int> short_batches(order.buckets().size());
  for (int64_t i = 0; i < order.batches_an_epoch(); ++i) {
    const PlannedBatch batch = order.batch(i);
    EXPECT_FALSE(batch.clips.empty());
    short_batches[batch.bucket] +=
        static_cast<int64_t>(batch.clips.size()) < order.buckets()[batch.bucket].rows;
  }
  for (const int count : short_batches) EXPECT_LE(count, 1);
}

TEST(BatchOrder, WithoutShufflingKeepsTheCorpusOrderInABucket) {
  const BatchOrder order(make_buckets(lengths_of(50), {.most = 1, .batch_size = 8}),
                         {.shuffle = false});
  std::vector<int64_t> expected(50);
  for (int64_t i = 0; i < 50; ++i) expected[static_cast<size_t>(i)] = i;
  EXPECT_EQ(seen(order, 1, 0, order.batches_an_epoch()), expected);
}

TEST(BatchOrder, AReplacementIsFromTheSameBucketAndAlwaysTheSame) {
  const BatchOrder order = order_of(300), again = order_of(300);
  const PlannedBatch batch = order.batch(3);
  const auto& clips = order.buckets()[batch.bucket].clips;
  std::set<int64_t> chosen;
  for (int64_t attempt = 0; attempt < 50; ++attempt) {
    const int64_t clip = order.replacement(batch, 2, attempt);
    EXPECT_EQ(clip, again.replacement(batch, 2, attempt));
    EXPECT_NE(std::find(clips.begin(), clips.end(), clip), clips.end());
    chosen.insert(clip);
  }
  EXPECT_GT(chosen.size(), clips.size() / 3) << "one attempt after another tries others";
}

TEST(BatchOrder, NoClipIsASentence) {
  EXPECT_EQ(error_of([] { BatchOrder({}, {}); }).kind(), ErrorKind::data);
}

TEST(Buckets, HoldWhatFitsAndPadLessThanOneBucketDoes) {
  const std::vector<ClipLength> clips = lengths_of(1000);
  const auto many = make_buckets(clips, {.most = 8}), one = make_buckets(clips, {.most = 1});
  EXPECT_EQ(many.size(), 8u);
  size_t held = 0;
  for (const Bucket& bucket : many) {
    held += bucket.clips.size();
    for (const int64_t clip : bucket.clips) {
      EXPECT_LE(clips[static_cast<size_t>(clip)].seconds, bucket.seconds);
      EXPECT_LE(clips[static_cast<size_t>(clip)].tokens, bucket.tokens);
    }
  }
  EXPECT_EQ(held, clips.size());
  EXPECT_LT(padding_share(many, clips), 0.15);
  EXPECT_GT(padding_share(one, clips), 0.4);
}

TEST(Buckets, ASecondsBudgetGivesShortClipsLargerBatches) {
  const auto buckets = make_buckets(lengths_of(1000), {.most = 4, .batch_seconds = 60});
  for (const Bucket& bucket : buckets) {
    EXPECT_EQ(bucket.rows, static_cast<int64_t>(60 / bucket.seconds));
    EXPECT_LE(static_cast<double>(bucket.rows) * bucket.seconds, 60.0);
  }
  EXPECT_GT(buckets.front().rows, buckets.back().rows);
}

TEST(Buckets, AClipLongerThanTheBudgetStillHasARow) {
  const auto buckets = make_buckets({{.seconds = 90, .tokens = 4}}, {.batch_seconds = 60});
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].rows, 1);
}

}  // namespace tandem
