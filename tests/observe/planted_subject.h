// A subject with a bottleneck in it: stages that take as long as a test says, on simulated devices.
// It obeys the settings a remedy may change, so that the remedy can be tried.
#pragma once

#include <ATen/ATen.h>
#include <pthread.h>
#include <time.h>

#include <barrier>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "config/check.h"
#include "config/schema.h"
#include "config/value.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/registry.h"
#include "observe/diagnose/diagnosis.h"
#include "observe/diagnose/measure.h"
#include "train/plan.h"

namespace tandem::tests {

inline void sleep_a(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}
// Of the thread's own time on a core, so that a busy machine makes it longer but no less work.
inline void compute_a(double seconds) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  for (const double start = now(); now() - start < seconds;) {
  }
}

// Named like the threads on which LibTorch runs backward passes for a GPU. Whoever gives it work
// waits until it is done, as a step waits for its backward pass.
class BackwardThread {
 public:
  BackwardThread() : thread_([this] { work(); }) {
    pthread_setname_np(thread_.native_handle(), "pt_autograd_9");
  }
  ~BackwardThread() { compute(-1); }
  void compute(double seconds) {
    std::unique_lock lock(mutex_);
    seconds_ = seconds;
    changed_.notify_all();
    changed_.wait(lock, [this] { return seconds_ == 0; });
  }

 private:
  void work() {
    for (bool ended = false; !ended;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return seconds_ != 0; });
      ended = seconds_ < 0;
      if (!ended) compute_a(seconds_);
      seconds_ = 0;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  double seconds_ = 0;  // to compute; below 0: to end; 0: done
  std::jthread thread_;
};

// Seconds unless said otherwise.
struct Planted {
  int tasks = 4;
  double reading = 0, decoding = 0;     // of a task: asleep, on a core
  int stall_every = 0;                  // batches
  double stall = 0;                     // asleep, once in so many batches
  double preparing = 0;                 // asleep, on a device of slowness 1
  int64_t width = 16;                   // numbers a row
  double launching = 0;                 // on a core, in the thread that trains
  double backward = 0;                  // on a core, in the one of its backward pass
  int64_t first_rows = 0;               // of the first batch; 0: as many as of the others
  double step = 0.005, step_a_row = 0;  // asleep in the device's queue, slowness 1
  int long_every = 0;                   // batches, one of which has a longer step
  double long_step = 0;
  double computing_a_row = 0;  // on a core in the device's queue
  int small_operations = 0;
  bool new_shapes = false;  // as many as data.buckets says, and each is captured
  double capturing = 0;
  uint64_t held = 0;              // bytes on the data device
  int hot_gpu = -1;               // of two, whose clock is held down
  bool prepares_at_home = false;  // on the model's device where no data GPU is set; else the CPU
};

class PlantedSubject final : public Subject, private BatchMaker {
 public:
  PlantedSubject(const Planted& planted, const Config& config, const std::vector<int>& gpus)
      : planted_(planted), config_(config) {
    DeviceRegistry& registry = DeviceRegistry::get();
    const bool dual = config.data.data_gpu.has_value();
    for (size_t i = dual ? 1 : 0; i < gpus.size(); ++i)
      models_.push_back(registry.gpus()[static_cast<size_t>(gpus[i])].get());
    if (!config.training.multi_gpu && !dual) models_.resize(1);
    data_ = dual                       ? registry.gpus()[static_cast<size_t>(gpus[0])].get()
            : planted.prepares_at_home ? models_.front()
                                       : &registry.cpu();
    if (planted.held > 0) {
      DeviceScope scope(*data_);
      held_ = at::zeros({static_cast<int64_t>(planted.held)}, scope.options().dtype(at::kByte));
    }
  }

  Circumstances circumstances() const {
    return {.config = config_,
            .strategy = config_.data.data_gpu ? StrategyKind::dual
                        : models_.size() > 1  ? StrategyKind::mirrored
                                              : StrategyKind::one_device,
            .visible_gpus = static_cast<int>(DeviceRegistry::get().gpus().size()),
            .queue_capacity = static_cast<size_t>(config_.data.buffer_size),
            .data_on_model = data_ == models_.front(),
            .takes_turns = data_ == models_.front()};
  }

  BatchMaker& batches() override { return *this; }
  LogicalDevice& data_device() override { return *data_; }
  std::vector<LogicalDevice*> models() override { return models_; }
  FeedOptions feeding() const override {
    FeedOptions options = feed_options(config_.data);
    options.end_batch = INT64_MAX;
    return options;
  }
  bool queues_work() override { return true; }
  int64_t unsettled(int) const override { return captures_; }
  void work_alone(int) override { meeting_.reset(); }
  // Replicas wait for each other after every step, as those of a training do.
  void work_together() override {
    if (models_.size() > 1)
      meeting_ = std::make_unique<std::barrier<>>(static_cast<std::ptrdiff_t>(models_.size()));
  }
  void gave_up(int) override {
    if (meeting_) meeting_->arrive_and_drop();
  }

  void step(int rank, const NextBatch& next) override {
    const Batch* batch = next();
    LogicalDevice& device = *models_[static_cast<size_t>(rank)];
    compute_a(planted_.launching);
    if (planted_.backward > 0) {
      if (!backward_) backward_ = std::make_unique<BackwardThread>();
      backward_->compute(planted_.backward);
    }
    at::Tensor number = at::zeros({1});
    for (int i = 0; i < planted_.small_operations; ++i) number.add_(1);
    if (planted_.new_shapes && shapes_.insert(batch->fields[0].size(1)).second) {
      ++captures_;
      sleep_a(planted_.capturing);
    }
    const auto rows = static_cast<double>(batch->rows);
    const bool is_long = planted_.long_every > 0 && batch->index % planted_.long_every == 0;
    device.compute_stream().run([this, rows, is_long] {
      sleep_a((is_long ? planted_.long_step : planted_.step) + planted_.step_a_row * rows);
      compute_a(planted_.computing_a_row * rows);
    });
    if (config_.training.enable_eager_debug || meeting_) device.compute_stream().synchronize();
    if (meeting_) meeting_->arrive_and_wait();
  }

 private:
  std::unique_ptr<HostBatch> make_host_batch(bool) override {
    return std::make_unique<HostBatch>();
  }
  void plan(HostBatch& host, int64_t index) override {
    host.index = index;
    host.tasks = planted_.tasks;
  }
  void run_task(HostBatch& host, int task) override {
    sleep_a(planted_.reading);
    compute_a(planted_.decoding / (config_.data.use_native_loading ? 10 : 1));
    if (task == 0 && planted_.stall_every > 0 && host.index % planted_.stall_every == 0)
      sleep_a(planted_.stall);
  }
  Batch prepare(const HostBatch& host) override {
    sleep_a(planted_.preparing);
    const bool small = host.index == 0 && planted_.first_rows > 0;
    const int64_t rows = small ? planted_.first_rows : config_.data.batch_size;
    // With many buckets no shape ever comes again.
    const int64_t more = !planted_.new_shapes        ? 0
                         : config_.data.buckets > 16 ? host.index
                                                     : host.index % config_.data.buckets;
    return {
        .index = host.index, .fields = {at::zeros({rows, planted_.width + more})}, .rows = rows};
  }

  const Planted planted_;
  const Config config_;
  LogicalDevice* data_ = nullptr;
  std::vector<LogicalDevice*> models_;
  at::Tensor held_;
  std::unique_ptr<std::barrier<>> meeting_;
  std::unique_ptr<BackwardThread> backward_;
  std::set<int64_t> shapes_;
  int64_t captures_ = 0;
};

inline Config with_settings(Config config, const std::vector<std::string>& settings) {
  for (const std::string& one : settings) {
    const size_t equals = one.find('=');
    const Setting* setting = find_by_key(one.substr(0, equals));
    if (!setting) throw std::runtime_error("no setting " + one);
    setting->set(config, checked_value(*setting, parse_value(one.substr(equals + 1)), one));
  }
  return config;
}

struct PlantedOutcome {
  Diagnosis diagnosis;
  double before = 0, after = 0;  // the figure that was named
  double others_load = 0;        // of either measurement, the higher
};

}  // namespace tandem::tests
