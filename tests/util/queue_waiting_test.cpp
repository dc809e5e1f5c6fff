#include <gtest/gtest.h>

#include <thread>

#include "util/bounded_queue.h"

namespace tandem::tests {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

TEST(BoundedQueue, WaitUntilFullReturnsEarlyWhenFull) {
  BoundedQueue<int> queue(2);
  std::thread producer([&] {
    queue.put(1);
    queue.put(2);
  });
  const auto start = Clock::now();
  EXPECT_EQ(queue.wait_until_full(30s), 2u);
  EXPECT_LT(seconds(start), 10);
  producer.join();
}

TEST(BoundedQueue, WaitUntilFullGivesUpAtTheLimit) {
  BoundedQueue<int> queue(2);
  queue.put(1);
  const auto start = Clock::now();
  EXPECT_EQ(queue.wait_until_full(50ms), 1u);
  EXPECT_GE(seconds(start), 0.049);
  queue.close();
  EXPECT_EQ(queue.wait_until_full(30s), 1u) << "a closed queue will not fill";
}

TEST(BoundedQueue, CountsWhoWaited) {
  BoundedQueue<int> queue(1);
  std::this_thread::sleep_for(30ms);
  EXPECT_GE(queue.counters().empty_time, 0.029) << "counts while it still stands empty";
  std::thread consumer([&] { queue.get(); });
  std::this_thread::sleep_for(30ms);
  queue.put(1);
  consumer.join();
  EXPECT_GE(queue.counters().empty_time, 0.059);
  EXPECT_GE(queue.counters().get_wait, 0.010);
  EXPECT_LT(queue.counters().put_wait, queue.counters().get_wait);
  queue.put(2);
  const double empty_before = queue.counters().empty_time;
  std::thread producer([&] { queue.put(3); });
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(queue.counters().empty_time, empty_before) << "it is not empty now";
  queue.get();
  producer.join();
  EXPECT_GE(queue.counters().put_wait, 0.010);
  EXPECT_EQ(queue.counters().items, 2u);
}

}  // namespace tandem::tests
