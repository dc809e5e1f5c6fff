#include "util/bounded_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tandem::tests {
namespace {

using namespace std::chrono_literals;

std::exception_ptr failure(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

}  // namespace

TEST(BoundedQueue, KeepsTheOrder) {
  BoundedQueue<int> queue(8);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(queue.put(i));
  EXPECT_EQ(queue.size(), 8u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(queue.get(), i);
}

TEST(BoundedQueue, MovesWhatCannotBeCopied) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  queue.put(std::make_unique<int>(5));
  EXPECT_EQ(**queue.get(), 5);
}

TEST(BoundedQueue, PutWaitsForRoom) {
  BoundedQueue<int> queue(1);
  queue.put(1);
  std::atomic<bool> second_in{false};
  std::thread producer([&] {
    queue.put(2);
    second_in = true;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(second_in);
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.get(), 1);
  producer.join();
  EXPECT_TRUE(second_in);
  EXPECT_EQ(queue.get(), 2);
}

TEST(BoundedQueue, CloseLetsConsumersDrainAndRefusesProducers) {
  BoundedQueue<int> queue(4);
  queue.put(1);
  queue.put(2);
  queue.close();
  EXPECT_FALSE(queue.put(3));
  EXPECT_EQ(queue.get(), 1);
  EXPECT_EQ(queue.get(), 2);
  EXPECT_EQ(queue.get(), std::nullopt);
}

TEST(BoundedQueue, CloseWakesBothSides) {
  BoundedQueue<int> full(1), empty(1);
  full.put(1);
  std::thread producer([&] { EXPECT_FALSE(full.put(2)); });
  std::thread consumer([&] { EXPECT_EQ(empty.get(), std::nullopt); });
  std::this_thread::sleep_for(20ms);
  full.close();
  empty.close();
  producer.join();
  consumer.join();
}

TEST(BoundedQueue, FailIsRethrownOnBothSides) {
  BoundedQueue<int> full(1), empty(1);
  full.put(1);
  std::thread producer([&] { EXPECT_THROW(full.put(2), std::runtime_error); });
  std::thread consumer([&] { EXPECT_THROW(empty.get(), std::runtime_error); });
  std::this_thread::sleep_for(20ms);
  full.fail(failure("lost"));
  empty.fail(failure("lost"));
  producer.join();
  consumer.join();
  EXPECT_THROW(full.get(), std::runtime_error) << "even with an item left";
}

TEST(BoundedQueue, TheFirstFailureStays) {
  BoundedQueue<int> queue(1);
  queue.fail(failure("first"));
  queue.fail(failure("second"));
  try {
    queue.get();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

TEST(BoundedQueue, ManyProducersAndConsumersLoseNothing) {
  constexpr int each = 2000, sides = 4;
  BoundedQueue<int> queue(3);
  std::vector<std::vector<int>> got(sides);
  std::vector<std::thread> producers, consumers;
  for (int p = 0; p < sides; ++p) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < each; ++i) queue.put(p * each + i);
    });
    consumers.emplace_back([&, p] {
      while (auto item = queue.get()) got[static_cast<size_t>(p)].push_back(*item);
    });
  }
  for (std::thread& producer : producers) producer.join();
  queue.close();
  for (std::thread& consumer : consumers) consumer.join();
  std::vector<int> all, expected(each * sides);
  for (const auto& part : got) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  EXPECT_EQ(queue.counters().items, static_cast<uint64_t>(each * sides));
}

}  // namespace tandem::tests
