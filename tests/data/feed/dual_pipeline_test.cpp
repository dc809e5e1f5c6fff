// One device prepares while another trains: proved by what ran where and by the time it took.
#include <gtest/gtest.h>

#include "data/feed/feed.h"
#include "data/feed/made_batches.h"
#include "device/simulated.h"

namespace tandem::tests {
namespace {

using namespace std::chrono_literals;
constexpr int64_t batches = 100;
constexpr auto each_side = 20ms;

// Trains `count` batches as a step on a device's queue does; the seconds it took.
double train(Feed& feed, LogicalDevice& device, std::chrono::milliseconds step) {
  const auto start = Clock::now();
  while (const auto batch = feed.next(0)) {
    device.compute_stream().run([&, fields = (*batch)->fields] {
      std::this_thread::sleep_for(step);
      at::mm(fields[0], fields[0].t());
    });
    device.compute_stream().synchronize();
  }
  return seconds_since(start);
}

double run(LogicalDevice& data, LogicalDevice& model, std::chrono::milliseconds preparing,
           std::chrono::milliseconds training) {
  MadeBatches made;
  made.preparing = preparing;
  Feed feed(made, data, {&model}, {.end_batch = batches, .capacity = 6});
  return train(feed, model, training);
}

}  // namespace

TEST(DualPipeline, PreparingAndTrainingRunAtTheSameTime) {
  const auto devices = simulate_devices(2);
  const double preparing = run(*devices[0], *devices[1], each_side, 0ms);
  const double training = run(*devices[0], *devices[1], 0ms, each_side);
  const double longer = std::max(preparing, training);
  const double dual = run(*devices[0], *devices[1], each_side, each_side);
  const double single = run(*devices[0], *devices[0], each_side, each_side);
  RecordProperty("figures", fmt::format("preparing {:.2f} s, training {:.2f} s, dual {:.2f} s, "
                                        "single {:.2f} s",
                                        preparing, training, dual, single));
  EXPECT_LT(dual, 1.25 * longer);
  EXPECT_GT(single, 0.9 * (preparing + training)) << "one device does one thing after the other";
}

TEST(DualPipeline, EachDeviceDoesItsOwnWorkAndNothingElse) {
  const auto devices = simulate_devices(2);
  count_operations(true);
  run(*devices[0], *devices[1], 0ms, 0ms);
  auto data = devices[0]->operations().by_name(), model = devices[1]->operations().by_name();
  EXPECT_EQ(data["aten::sin"], static_cast<uint64_t>(batches));
  EXPECT_EQ(data.count("aten::mm"), 0u) << "the data device trains nothing";
  EXPECT_EQ(model["aten::mm"], static_cast<uint64_t>(batches));
  EXPECT_EQ(model.count("aten::sin"), 0u) << "the model device prepares nothing";
  EXPECT_EQ(model["aten::copy_"], static_cast<uint64_t>(batches)) << "and takes each batch once";
}

TEST(DualPipeline, OneDataDeviceFeedsManyModels) {
  const auto devices = simulate_devices(4);
  MadeBatches made;
  made.rows = 7;
  Feed feed(made, *devices[0], {devices[1], devices[2], devices[3]}, {.end_batch = 40});
  std::vector<std::thread> threads;
  std::array<int64_t, 3> rows{}, right{};
  for (size_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      for (int64_t index = 0; const auto batch = feed.next(static_cast<int>(rank)); ++index) {
        rows[rank] += (*batch)->rows;
        right[rank] +=
            (*batch)->index == index && MadeBatches::holds(**batch) && (*batch)->whole_rows == 7;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rows, (std::array<int64_t, 3>{80, 80, 120}));
  EXPECT_EQ(right, (std::array<int64_t, 3>{40, 40, 40}));
}

TEST(DualPipeline, ReleasedBuffersAreNeverReadAgain) {
  const auto devices = simulate_devices(2);
  struct Case {
    LogicalDevice* model;
    bool staged, prefetch, overlap;
  };
  for (const Case& c :
       {Case{devices[1], false, true, true}, Case{devices[1], true, true, true},
        Case{devices[1], false, false, true}, Case{devices[1], false, true, false},
        Case{devices[0], false, true, true}, Case{devices[0], false, false, true}}) {
    MadeBatches made;
    Feed feed(made, *devices[0], {c.model},
              {.end_batch = 300,
               .capacity = 3,
               .prefetch_to_device = c.prefetch,
               .overlap = c.overlap,
               .force_staging = c.staged,
               .poison = true});
    int64_t right = 0;
    while (const auto batch = feed.next(0)) right += MadeBatches::holds(**batch);
    EXPECT_EQ(right, 300) << "staged " << c.staged << ", prefetch " << c.prefetch << ", overlap "
                          << c.overlap;
  }
}

TEST(DualPipeline, APoisonedBufferWouldBeSeen) {
  RingSlot slot;
  slot_view(slot.buffers, 0, at::ones({2, 3}), 2, at::TensorOptions()).fill_(1);
  poison(slot);
  EXPECT_TRUE(slot.buffers[0].isnan().all().item<bool>());
}

TEST(DualPipeline, TheStartDelayEndsWhenTheBufferThatTrainingReadsIsFull) {
  const auto devices = simulate_devices(2);
  MadeBatches made;
  made.preparing = 5ms;
  Feed feed(made, *devices[0], {devices[1]}, {.end_batch = 1000, .capacity = 10});
  const auto start = Clock::now();
  EXPECT_EQ(feed.wait_until_full(30s), 10u);
  EXPECT_LT(seconds_since(start), 20);
  EXPECT_TRUE(MadeBatches::holds(**feed.next(0))) << "what was warmed up is what is read";
}

TEST(DualPipeline, TheStartDelayTimesOutWithTheRealCount) {
  const auto devices = simulate_devices(2);
  MadeBatches made;
  made.preparing = 100ms;
  Feed feed(made, *devices[0], {devices[1]}, {.end_batch = 1000, .capacity = 50});
  const auto start = Clock::now();
  EXPECT_LT(feed.wait_until_full(500ms), 10u);
  EXPECT_GE(seconds_since(start), 0.5);
}

}  // namespace tandem::tests
