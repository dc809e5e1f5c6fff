// The feed beside a stand-in for training.
#include <thread>

#include "data/feed/speech_feed.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "observe/data_bench.h"
#include "tandem/error.h"
#include "util/clock.h"

namespace tandem {
namespace {

// Keeps a device busy for a time: matrix products on a GPU, as many as it takes; elsewhere its
// queue sleeps, as a simulated device's would.
class Busy {
 public:
  Busy(LogicalDevice& device, double seconds) : device_(device), seconds_(seconds) {
    if (device.kind() != DeviceKind::cuda) return;
    DeviceScope scope(device);
    a_ = at::ones({2048, 2048}, scope.options().dtype(at::kHalf));
    multiply(20);
    constexpr int trial = 200;
    const auto start = Clock::now();
    multiply(trial);
    products_ = std::max(1, static_cast<int>(seconds / seconds_since(start) * trial));
  }

  void step(const Batch& batch) {
    if (device_.kind() == DeviceKind::cuda) {
      DeviceScope scope(device_);
      for (int i = 0; i < products_; ++i) at::mm_out(b_, a_, a_);
      read_ = batch.fields[speech_mels].sum();
    } else {
      device_.compute_stream().run([this, mels = batch.fields[speech_mels]] {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
        read_ = mels.sum();
      });
      device_.compute_stream().synchronize();
    }
  }

 private:
  void multiply(int times) {
    if (!b_.defined()) b_ = at::empty_like(a_);
    for (int i = 0; i < times; ++i) at::mm_out(b_, a_, a_);
    device_.compute_stream().synchronize();
  }
  LogicalDevice& device_;
  double seconds_;
  int products_ = 1;
  at::Tensor a_, b_, read_;
};

}  // namespace

StepBench bench_steps(SpeechFeed& speech, const FeedOptions& feeding, LogicalDevice& data,
                      LogicalDevice& model, double step_seconds, double seconds) {
  constexpr int64_t warm_up = 10;
  const auto steps = static_cast<int64_t>(std::max(20.0, seconds / step_seconds));
  Busy busy(model, step_seconds);
  StepBench bench;
  Feed feed(speech.batches, data, {&model}, feeding);
  {
    const auto batch = feed.next(0);
    // The buffers fill meanwhile; once they are full the feed stands still and disturbs nothing.
    feed.wait_until_full(std::chrono::seconds(10));
    model.compute_stream().synchronize();
    const auto start = Clock::now();
    for (int64_t i = 0; i < steps; ++i) busy.step(**batch);
    model.compute_stream().synchronize();
    bench.replay_step = seconds_since(start) / static_cast<double>(steps);
  }
  double waited = 0;
  uint64_t late = 0;
  Clock::time_point start{};
  for (int64_t i = 0; i < steps + warm_up; ++i) {
    if (i == warm_up) {
      model.compute_stream().synchronize();
      start = Clock::now();
      waited = 0;
      late = feed.counters(0).late;
    }
    const auto asked = Clock::now();
    const auto batch = feed.next(0);
    if (!batch) throw Error(ErrorKind::internal, "the feed ended");
    waited += seconds_since(asked);
    busy.step(**batch);
  }
  model.compute_stream().synchronize();
  const double all = seconds_since(start);
  bench.fed_step = all / static_cast<double>(steps);
  bench.wait_share = waited / all;
  bench.late = feed.counters(0).late - late;
  return bench;
}

}  // namespace tandem
