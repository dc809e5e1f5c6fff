// Which device gets which clips, and what happens to them.
#include "generate/music_pool.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <thread>

#include "device/simulated.h"
#include "generate/fake_music.h"
#include "generate/music_shares.h"

namespace tandem {
namespace {

using Parts = std::vector<int64_t>;

PreparedClip clip_at(size_t place, int64_t prompt = 0) {
  PreparedClip clip;
  clip.place = place;
  clip.request.seed = place;
  if (prompt > 0) clip.request.prompt = at::zeros({1, prompt}, at::kLong);
  return clip;
}
std::vector<size_t> places_of(const std::optional<ClipBatch>& batch) {
  std::vector<size_t> places;
  for (const PreparedClip& clip : batch.value()) places.push_back(clip.place);
  return places;
}
std::vector<size_t> run_of(size_t first, size_t count) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), first);
  return places;
}

TEST(DeviceBatches, AreEqualWithTheRemainderForTheLast) {
  EXPECT_EQ(device_batches(64, 3), (Parts{21, 21, 22}));
  EXPECT_EQ(device_batches(64, 2), (Parts{32, 32}));
  EXPECT_EQ(device_batches(64, 1), (Parts{64}));
  EXPECT_EQ(device_batches(7, 5), (Parts{1, 1, 1, 1, 3}));
  EXPECT_EQ(device_batches(2, 3), (Parts{1, 1, 1})) << "no device stands idle";
}

TEST(CutBatch, GivesTheRemainderToTheLastAsFarAsItFits) {
  EXPECT_EQ(cut_batch(64, {21, 21, 22}), (Parts{21, 21, 22}));
  EXPECT_EQ(cut_batch(10, {21, 21, 22}), (Parts{3, 3, 4}));
  EXPECT_EQ(cut_batch(11, {21, 21, 22}), (Parts{3, 3, 5}));
  EXPECT_EQ(cut_batch(2, {21, 21, 22}), (Parts{0, 0, 2}));
  EXPECT_EQ(cut_batch(63, {8, 8, 8, 8, 8, 8, 8, 8}), (Parts{7, 8, 8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(cut_batch(20, {21, 4, 2}), (Parts{14, 4, 2}));
  EXPECT_EQ(cut_batch(10, {21, 0, 22}), (Parts{5, 0, 5})) << "one that is lost";
  for (int64_t count = 0; count < 70; ++count) {
    const Parts parts = cut_batch(count, {21, 3, 22});
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), int64_t{0}),
              std::min<int64_t>(count, 46));
  }
}

TEST(ClipShares, AQueueGivesEachDeviceItsOwnSizeAndCutsTheEndEvenly) {
  ClipShares shares({.limits = {4, 6}, .ahead = 4, .total = 26});
  for (size_t i = 0; i < 26; ++i) shares.put(clip_at(i));
  EXPECT_EQ(places_of(shares.take(0)), run_of(0, 4));
  EXPECT_EQ(places_of(shares.take(1)), run_of(4, 6));
  EXPECT_EQ(places_of(shares.take(1)), run_of(10, 6));
  EXPECT_EQ(places_of(shares.take(0)), run_of(16, 4));
  EXPECT_EQ(places_of(shares.take(1)), run_of(20, 6)) << "ten were left: a whole batch each";
  EXPECT_FALSE(shares.take(0));
  EXPECT_FALSE(shares.over());
  shares.resolve(26);
  EXPECT_TRUE(shares.over());
  EXPECT_FALSE(shares.wait_for_more(0));
}

TEST(ClipShares, TheRestOfAQueueIsCutOverTheDevices) {
  for (const size_t skipped : {0, 3}) {
    ClipShares shares({.limits = {32, 32}, .total = 40 + static_cast<int64_t>(skipped)});
    for (size_t i = 0; i < skipped; ++i) shares.pass_over();
    for (size_t i = 0; i < 40; ++i) shares.put(clip_at(i));
    EXPECT_EQ(places_of(shares.take(1)), run_of(0, 20)) << "not 32 and 8";
    EXPECT_EQ(places_of(shares.take(0)), run_of(20, 20));
  }
}

TEST(ClipShares, ClipsThatComeBackAreTakenByWhoeverAsks) {
  ClipShares shares({.limits = {4, 4}, .total = 8});
  for (size_t i = 0; i < 8; ++i) shares.put(clip_at(i));
  auto lost = shares.take(0);
  EXPECT_EQ(places_of(shares.take(1)), run_of(4, 4));
  EXPECT_FALSE(shares.take(1));
  shares.resolve(4);
  std::thread later([&] {
    shares.lose(0);
    shares.give_back(std::move(*lost), false);
  });
  EXPECT_TRUE(shares.wait_for_more(1));
  later.join();
  EXPECT_EQ(shares.devices_left(), 1);
  EXPECT_EQ(places_of(shares.take(1)), run_of(0, 4));
  EXPECT_FALSE(shares.take(0)) << "it is out";
}

TEST(ClipShares, ABatchIsGatheredBeforeTheNextIsCut) {
  ClipShares shares({.limits = {2, 3}, .gather = true, .ahead = 3, .total = 10});
  for (size_t i = 0; i < 10; ++i) shares.put(clip_at(i));
  EXPECT_EQ(places_of(shares.take(0)), run_of(0, 2));
  EXPECT_EQ(places_of(shares.take(1)), run_of(2, 3));
  shares.generated(2);
  std::atomic<bool> taken{false};
  std::thread first([&] {
    EXPECT_EQ(places_of(shares.take(0)), run_of(5, 2));
    taken = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(taken) << "the other has not done its part";
  shares.generated(3);
  first.join();
  EXPECT_TRUE(taken);
  EXPECT_EQ(places_of(shares.take(1)), run_of(7, 3));
}

TEST(ClipShares, ADeviceWithLittleMemoryMakesItsShareInPieces) {
  ClipShares shares({.limits = {4, 4}, .gather = true, .total = 8});
  for (size_t i = 0; i < 8; ++i) shares.put(clip_at(i));
  auto batch = shares.take(0);
  shares.try_smaller(0, std::move(*batch), 2);
  EXPECT_EQ(shares.limit(0), 2);
  EXPECT_EQ(places_of(shares.take(0)), run_of(0, 2));
  EXPECT_EQ(places_of(shares.take(0)), run_of(2, 2));
  EXPECT_EQ(places_of(shares.take(1)), run_of(4, 4));
  batch = shares.take(0);
  EXPECT_FALSE(batch);
}

TEST(ClipShares, ABatchHasPromptsOfOneLengthAlsoWhenTheWindowIsFull) {
  ClipShares shares({.limits = {4}, .ahead = 1, .total = 8});
  std::thread feeder([&] {
    for (size_t i = 0; i < 8; ++i) shares.put(clip_at(i, static_cast<int64_t>(i % 3)));
  });
  std::set<size_t> seen;
  while (const auto batch = shares.take(0)) {
    for (const PreparedClip& clip : *batch) {
      EXPECT_EQ(clip.place % 3, batch->front().place % 3);
      EXPECT_TRUE(seen.insert(clip.place).second);
    }
  }
  feeder.join();
  EXPECT_EQ(seen.size(), 8);
}

TEST(ClipShares, StoppingFreesEveryone) {
  ClipShares shares({.limits = {1}, .ahead = 1, .total = 9});
  shares.put(clip_at(0));
  std::thread feeder([&] { EXPECT_FALSE(shares.put(clip_at(1))); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  shares.stop();
  feeder.join();
  EXPECT_FALSE(shares.take(0));
  EXPECT_FALSE(shares.wait_for_more(0));
}

TEST(MusicWorkers, EveryClipIsDeliveredOnceHoweverDevicesFail) {
  const std::vector<LogicalDevice*> devices = simulate_devices(4);
  for (uint64_t turn = 0; turn < 16; ++turn) {
    FakeMusicRecord record;
    // Any of three devices fails at some batch; memory is short now and then; the fourth holds.
    record.before = [&](int device, int batch, const auto& requests) {
      const uint64_t draw = counted_below(12, turn, "fault", static_cast<uint64_t>(device),
                                          static_cast<uint64_t>(batch));
      if (draw == 0 && device < 3) throw Error(ErrorKind::device, "gone");
      if (draw == 1 && requests.size() > 1) throw Error(ErrorKind::memory, "full");
      if (draw == 2 && requests.size() > 1) throw Error(ErrorKind::data, "odd");
    };
    constexpr size_t count = 60;
    ClipShares shares({.limits = {5, 5, 5, 7}, .gather = turn % 2 == 1, .total = count});
    std::mutex mutex;
    std::multiset<size_t> delivered;
    MusicWorkers workers(
        shares, {.devices = devices,
                 .make_engine =
                     [&](LogicalDevice& device) {
                       return std::make_unique<FakeMusicEngine>(device, record);
                     },
                 .music = {},
                 .deliver =
                     [&](PreparedClip clip, MusicClip) {
                       std::lock_guard lock(mutex);
                       delivered.insert(clip.place);
                     },
                 .fail = [](PreparedClip, const std::string& why) { ADD_FAILURE() << why; },
                 .note = [](const std::string&) {},
                 .ended = [](std::exception_ptr) { ADD_FAILURE(); }});
    for (size_t i = 0; i < count; ++i) ASSERT_TRUE(shares.put(clip_at(i, i % 7 == 0 ? 3 : 0)));
    workers.join();
    ASSERT_EQ(delivered.size(), count) << turn;
    ASSERT_EQ(std::set<size_t>(delivered.begin(), delivered.end()).size(), count) << turn;
    ASSERT_TRUE(shares.over());
    int64_t clips = 0;
    for (const DeviceWork& work : workers.work()) clips += work.clips;
    ASSERT_EQ(clips, static_cast<int64_t>(count));
  }
}

}  // namespace
}  // namespace tandem
