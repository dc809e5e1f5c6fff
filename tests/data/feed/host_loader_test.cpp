#include "data/feed/host_loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "data/feed/made_batches.h"
#include "tandem/error.h"

namespace tandem::tests {
namespace {
using namespace std::chrono_literals;
}

TEST(HostLoader, RunsEveryTaskOnceAndHandsBatchesOutInOrder) {
  MadeBatches made;
  made.tasks = 5;
  std::mutex mutex;
  std::multiset<std::pair<int64_t, int>> ran;
  made.on_task = [&](int64_t index, int task) {
    // Later batches finish first, if they are let.
    std::this_thread::sleep_for(std::chrono::microseconds(500 * (3 - index % 3)));
    std::lock_guard lock(mutex);
    ran.emplace(index, task);
  };
  HostLoader loader(made, {.first_batch = 2, .end_batch = 32, .workers = 4, .most_ahead = 8});
  for (int64_t index = 2; index < 32; ++index) {
    auto host = loader.take();
    ASSERT_TRUE(host);
    EXPECT_EQ(host->index, index);
    {
      std::lock_guard lock(mutex);
      for (int task = 0; task < 5; ++task) EXPECT_EQ(ran.count({index, task}), 1u);
    }
    loader.give_back(std::move(host), Event());
  }
  EXPECT_FALSE(loader.take());
  EXPECT_EQ(ran.size(), 150u);
  EXPECT_EQ(loader.counters().items, 30u);
}

TEST(HostLoader, IsNeverFurtherAheadThanAllowed) {
  MadeBatches made;
  made.tasks = 1;
  std::atomic<int64_t> furthest{0};
  made.on_task = [&](int64_t index, int) { furthest = std::max<int64_t>(furthest, index); };
  HostLoader loader(made, {.end_batch = 100, .workers = 4, .ahead = 3, .most_ahead = 3});
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(furthest, 2);
  // The fourth batch is made by a thread that had to wait for room.
  for (int i = 0; i < 4; ++i) loader.give_back(loader.take(), Event());
  EXPECT_GT(loader.counters().put_wait, 0.0);
}

TEST(HostLoader, GoesFurtherAheadWhenTheReaderWaitedForLackOfRoom) {
  MadeBatches made;
  made.tasks = 1;
  made.loading = 3ms;
  HostLoader loader(made, {.end_batch = 200, .workers = 4, .ahead = 2, .most_ahead = 8});
  while (auto host = loader.take()) loader.give_back(std::move(host), Event());
  EXPECT_GT(loader.ahead(), 2u);
  EXPECT_LE(loader.ahead(), 8u);

  HostLoader fixed(made, {.end_batch = 50, .workers = 4, .ahead = 2, .most_ahead = 2});
  while (auto host = fixed.take()) fixed.give_back(std::move(host), Event());
  EXPECT_EQ(fixed.ahead(), 2u);
}

TEST(HostLoader, WhatATaskThrowsReachesTheReader) {
  MadeBatches made;
  made.tasks = 3;
  made.on_task = [](int64_t index, int) {
    if (index == 4) throw Error(ErrorKind::data, "clip 4 is no good");
  };
  HostLoader loader(made, {.end_batch = 10, .workers = 2, .most_ahead = 4});
  try {
    while (auto host = loader.take()) loader.give_back(std::move(host), Event());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "clip 4 is no good");
  }
}

}  // namespace tandem::tests
