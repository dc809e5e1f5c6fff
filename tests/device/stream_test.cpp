#include "device/stream.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "device/simulated.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto moment = std::chrono::milliseconds(20);

TEST(Stream, RunsInOrderBesideTheCaller) {
  Stream& stream = simulate_devices(1)[0]->compute_stream();
  std::promise<void> gate;
  std::vector<int> order;
  stream.run([&] { gate.get_future().wait(); });
  for (int i = 0; i < 100; ++i) stream.run([&order, i] { order.push_back(i); });
  EXPECT_TRUE(order.empty());  // the caller did not wait
  gate.set_value();
  stream.synchronize();
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Stream, WorksInTheScopeOfItsDevice) {
  const auto devices = simulate_devices(2);
  LogicalDevice* seen = nullptr;
  devices[1]->compute_stream().run([&] { seen = DeviceScope::current(); });
  devices[1]->compute_stream().synchronize();
  EXPECT_EQ(seen, devices[1]);
}

TEST(Event, OrdersTwoStreams) {
  const auto devices = simulate_devices(2);
  Stream& first = devices[0]->compute_stream();
  Stream& second = devices[1]->compute_stream();
  std::atomic<bool> produced{false};
  bool seen = false;
  first.run([&] {
    std::this_thread::sleep_for(moment);
    produced = true;
  });
  const Event event = first.record();
  EXPECT_FALSE(event.done());
  second.wait(event);
  second.run([&] { seen = produced; });
  second.synchronize();
  EXPECT_TRUE(seen);
  EXPECT_TRUE(event.done());
}

TEST(Event, SaysWhatTimeTheDeviceTookAndNotTheCaller) {
  Stream& stream = simulate_devices(1)[0]->compute_stream();
  const double expected = std::chrono::duration<double>(moment).count();
  stream.run([] { std::this_thread::sleep_for(moment); });
  const Event began = stream.record_time();
  for (int i = 0; i < 3; ++i) stream.run([] { std::this_thread::sleep_for(moment); });
  const Event ended = stream.record_time();  // the caller is here long before
  EXPECT_GE(ended.seconds_since(began), 3 * expected);
  EXPECT_TRUE(began.done() && ended.done());
  // The caller's own pauses count where the device had nothing to do.
  std::this_thread::sleep_for(moment);
  EXPECT_GE(stream.record_time().seconds_since(ended), expected);
  Stream& cpu = DeviceRegistry::get().cpu().compute_stream();
  const Event before = cpu.record_time();
  std::this_thread::sleep_for(moment);
  EXPECT_GE(cpu.record_time().seconds_since(before), expected);
}

TEST(Event, EmptyOneIsDone) {
  EXPECT_TRUE(Event().done());
  Event().synchronize();
}

TEST(Stream, TwoStreamsOfOneDeviceOverlap) {
  LogicalDevice& device = *simulate_devices(1)[0];
  std::promise<void> copy_ran;
  bool overlapped = false;
  // The compute stream waits for the copy stream: only possible when both run at once.
  device.compute_stream().run([&] {
    overlapped =
        copy_ran.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  });
  device.copy_stream().run([&] { copy_ran.set_value(); });
  device.compute_stream().synchronize();
  device.copy_stream().synchronize();
  EXPECT_TRUE(overlapped);
}

TEST(Stream, HandsAnExceptionToTheCallerAndDropsWhatFollows) {
  Stream& stream = simulate_devices(1)[0]->compute_stream();
  bool ran_after = false;
  stream.run([] { throw std::runtime_error("broken"); });
  const Event after_failure = stream.record();
  after_failure.synchronize();  // nobody waits for ever
  EXPECT_THROW(stream.run([&] { ran_after = true; }), std::runtime_error);
  stream.synchronize();  // thrown once
  EXPECT_FALSE(ran_after);
  stream.run([&] { ran_after = true; });
  stream.synchronize();
  EXPECT_TRUE(ran_after);
}

TEST(Stream, OfASlowDeviceTakesLonger) {
  setenv("TANDEM_SIMULATE_SLOWNESS", "1,4", 1);
  const auto devices = simulate_devices(2);
  const auto seconds_on = [](LogicalDevice& device) {
    const auto start = Clock::now();
    device.compute_stream().run([] { std::this_thread::sleep_for(moment); });
    device.compute_stream().synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  EXPECT_GE(seconds_on(*devices[1]), 4 * std::chrono::duration<double>(moment).count());
}

TEST(Stream, OfTheCpuRunsAtOnce) {
  LogicalDevice& cpu = DeviceRegistry::get().cpu();
  bool ran = false;
  cpu.compute_stream().run([&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_TRUE(cpu.compute_stream().record().done());
  EXPECT_EQ(DeviceRegistry::get().first_use(), "");  // the CPU freezes nothing
}

}  // namespace
}  // namespace tandem
