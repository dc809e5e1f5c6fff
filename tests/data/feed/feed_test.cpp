#include "data/feed/feed.h"

#include <gtest/gtest.h>

#include "data/feed/byte_corpus.h"
#include "device/logical_device.h"
#include "device/registry.h"
#include "nn/tensors.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

using namespace std::chrono_literals;

class FeedTest : public ::testing::Test {
 protected:
  FeedTest() {
    std::string text;
    for (int i = 0; i < 9000; ++i) text += static_cast<char>(i * 7 % 256);
    put(scratch_ / "text", text);
  }
  ByteCorpus corpus() const { return {(scratch_ / "text").string(), 8}; }
  LogicalDevice& cpu() const { return DeviceRegistry::get().cpu(); }
  TestFolder scratch_;
};

}  // namespace

TEST_F(FeedTest, GivesTheBatchesInOrderAndEnds) {
  ByteCorpus corpus = this->corpus(), other = this->corpus();
  ByteBatches batches(corpus, 3, 4);
  Feed feed(batches, cpu(), {&cpu()}, {.first_batch = 5, .end_batch = 25, .capacity = 3});
  for (int64_t index = 5; index < 25; ++index) {
    const std::optional<BatchLease> batch = feed.next(0);
    ASSERT_TRUE(batch);
    EXPECT_EQ((*batch)->index, index);
    EXPECT_EQ((*batch)->rows, 4);
    EXPECT_EQ((*batch)->whole_rows, 4);
    EXPECT_TRUE(same_bits((*batch)->fields[byte_tokens],
                          other.train_batch(3, index, 0, 4).fields[byte_tokens]));
  }
  EXPECT_FALSE(feed.next(0));
  EXPECT_FALSE(feed.next(0)) << "the end stays";
  EXPECT_EQ(feed.counters(0).prepared.items, 20u);
  EXPECT_EQ(feed.counters(0).loaded.items, 20u);
}

TEST_F(FeedTest, WithoutBatchesEndsAtOnce) {
  ByteCorpus corpus = this->corpus();
  ByteBatches batches(corpus, 0, 4);
  Feed feed(batches, cpu(), {&cpu()}, {.first_batch = 5, .end_batch = 5});
  EXPECT_FALSE(feed.next(0));
}

TEST_F(FeedTest, GivesEachReplicaItsPart) {
  ByteCorpus corpus = this->corpus(), other = this->corpus();
  ByteBatches batches(corpus, 0, 10);
  constexpr size_t replicas = 3;
  Feed feed(batches, cpu(), std::vector(replicas, &cpu()), {.end_batch = 6, .capacity = 2});
  std::vector<std::vector<at::Tensor>> got(replicas);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < replicas; ++rank) {
    threads.emplace_back([&, rank] {
      while (const auto batch = feed.next(static_cast<int>(rank)))
        got[rank].push_back((*batch)->fields[byte_tokens].clone());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t index = 0; index < 6; ++index) {
    ASSERT_GT(got[0].size(), index);
    EXPECT_EQ(got[0][index].size(0), 3);
    EXPECT_EQ(got[2][index].size(0), 4) << "the last takes the rest";
    const at::Tensor whole = at::cat({got[0][index], got[1][index], got[2][index]});
    EXPECT_TRUE(same_bits(
        whole, other.train_batch(0, static_cast<int64_t>(index), 0, 10).fields[byte_tokens]));
  }
}

TEST_F(FeedTest, PreparesNoMoreThanItsCapacityAhead) {
  ByteCorpus corpus = this->corpus();
  ByteBatches batches(corpus, 0, 4);
  Feed feed(batches, cpu(), {&cpu()}, {.end_batch = 1000, .capacity = 4});
  EXPECT_EQ(feed.capacity(), 4u);
  EXPECT_EQ(feed.wait_until_full(20s), 4u);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(feed.wait_until_full(0s), 4u);
  feed.next(0);
  EXPECT_EQ(feed.wait_until_full(20s), 4u) << "one taken is one more prepared";
}

TEST_F(FeedTest, WaitingEndsWhenThereIsNoMoreToPrepare) {
  ByteCorpus corpus = this->corpus();
  ByteBatches batches(corpus, 0, 4);
  Feed feed(batches, cpu(), {&cpu()}, {.end_batch = 2, .capacity = 50});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(feed.wait_until_full(30s), 2u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST_F(FeedTest, ARankThatStopsItLeavesNobodyWaiting) {
  ByteCorpus corpus = this->corpus();
  ByteBatches batches(corpus, 0, 4);
  Feed feed(batches, cpu(), {&cpu(), &cpu()}, {.end_batch = 1000, .capacity = 2});
  int64_t taken = 0;
  std::thread ahead([&] {
    while (feed.next(1)) ++taken;
  });
  feed.next(0);
  std::this_thread::sleep_for(50ms);  // the other waits behind our full queue
  feed.stop();
  ahead.join();
  EXPECT_LT(taken, 10);
  for (int ready = 0; feed.next(0); ++ready) ASSERT_LT(ready, 3);
  feed.stop();
}

TEST_F(FeedTest, AFailureInPreparingReachesEveryReplica) {
  install_ledgers();
  ByteCorpus corpus = this->corpus();
  ByteBatches batches(corpus, 0, 16);
  LogicalDevice small({.kind = DeviceKind::simulated, .memory_limit = 1000, .hard_limit = true});
  Feed feed(batches, small, {&cpu(), &cpu()}, {.end_batch = 10});
  for (const int rank : {0, 1}) {
    const Thrown thrown = thrown_by([&] { feed.next(rank); });
    EXPECT_EQ(thrown.kind, "memory");
    EXPECT_TRUE(contains(thrown.sentence, "is out of memory")) << thrown.sentence;
  }
}

TEST_F(FeedTest, CanBeDestroyedWhileFullAndWhileFilling) {
  ByteCorpus corpus = this->corpus();
  ByteBatches batches(corpus, 0, 4);
  for (const auto wait : {0ms, 1ms, 1000ms}) {
    Feed feed(batches, cpu(), {&cpu(), &cpu()}, {.end_batch = 1'000'000, .capacity = 3});
    feed.wait_until_full(wait);
  }
  SUCCEED() << "a hang would run into the time limit";
}

}  // namespace tandem::tests
