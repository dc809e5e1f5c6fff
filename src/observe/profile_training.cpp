#include "observe/profile_training.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "device/communicator.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "observe/profile_sections.h"
#include "observe/profile_training_work.h"
#include "tandem/config.h"
#include "tandem/error.h"
#include "train/loss_reader.h"
#include "train/plan.h"
#include "train/replica.h"
#include "train/stage.h"
#include "train/stages/low_precision.h"
#include "util/log.h"

namespace tandem {
namespace {

// Named like the parts of the memory's table.
constexpr const char* queued_batches = "batches that wait";
constexpr const char* rest_of_memory = "captured inputs and the rest";

class TrainingProfile {
 public:
  TrainingProfile(const Config& config, const ProfileOptions& options)
      : config_(config), options_(options), plan_(make_plan(config)) {
    if (!config.data.train_data)
      throw Error(ErrorKind::config, "no training data was given").hint("add --train-data PATH");
  }

  Profile run() {
    create();
    start_feed();
    log_info("warming up: {} steps", options_.warm_up);
    live(options_.warm_up, nullptr);
    // A shape that is rarer than the settling is long comes while steps are timed.
    constexpr int most_trials = 2;
    for (int trial = 0; trial < most_trials; ++trial) {
      settle();
      if (time_steps() == 0) break;
    }
    trace();
    for (size_t rank = 0; rank < replicas_.size(); ++rank) {
      std::vector<std::pair<std::string, uint64_t>>& memory = profile_.replicas[rank].memory;
      memory = replicas_[rank]->bytes_by_part();
      if (waiting_[rank] > 0) memory.emplace_back(queued_batches, waiting_[rank]);
      note_memory(profile_, rank, rest_of_memory);
    }
    if (options_.cost_rounds > 0) log_info("measuring what the profiling costs");
    profile_.cost =
        measure_cost(options_.cost_rounds, profile_.replicas[0].device->kind() == DeviceKind::cuda,
                     origin_, [this](bool recorded) { return again(recorded); });
    feed_.reset();
    if (options_.limits) find_limits();
    return std::move(profile_);
  }

 private:
  int64_t traced_steps() const { return std::min(options_.traced_steps, options_.steps); }

  void create() {
    DeviceRegistry& registry = DeviceRegistry::get();
    set_precision(config_.training.precision, config_.training.deterministic);
    profile_.data_device = &registry.find(plan_.strategy.data_device);
    stage_ = make_stage(config_, *profile_.data_device, /*bad_list=*/"");
    std::vector<LogicalDevice*> devices;
    for (const std::string& name : plan_.strategy.replicas) devices.push_back(&registry.find(name));
    if (devices.size() > 1) {
      const std::chrono::duration<double> timeout(config_.training.collective_timeout);
      groups_ = make_in_process_group(
          devices, std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
    }
    for (size_t rank = 0; rank < devices.size(); ++rank) {
      DeviceScope scope(*devices[rank]);
      profile_.replicas.push_back({.device = devices[rank]});
      replicas_.push_back(std::make_unique<Replica>(
          *devices[rank], stage_->make_learner(*devices[rank]), config_.training, group(rank)));
    }
    for (const Phase& phase : replicas_[0]->learner().phases())
      profile_.phases.push_back(phase.name);
    profile_.stage = config_.training.stage;
    profile_.precision = config_.training.precision;
    profile_.rows = plan_.batch_size;
    profile_.accumulation = plan_.accumulation;
    profile_.tokens_a_step = stage_->tokens_a_batch() * static_cast<double>(plan_.accumulation);
    last_batches_.resize(devices.size());
  }

  void start_feed() {
    std::vector<uint64_t> before;
    for (const ProfiledReplica& found : profile_.replicas)
      before.push_back(found.device->memory().used());
    FeedOptions options = feed_options(config_.data);
    options.end_batch = INT32_MAX;  // as in a long run, it is never done while we look
    options.capacity = plan_.queue_capacity;
    std::vector<LogicalDevice*> models;
    for (const ProfiledReplica& found : profile_.replicas) models.push_back(found.device);
    feed_ = std::make_unique<Feed>(stage_->batches(), *profile_.data_device, models, options);
    // A run that has begun long ago is what is asked for.
    feed_->wait_until_full(std::chrono::duration<double>(config_.data.model_start_delay));
    for (size_t rank = 0; rank < before.size(); ++rank) {
      const uint64_t used = profile_.replicas[rank].device->memory().used();
      waiting_.push_back(used > before[rank] ? used - before[rank] : 0);
    }
  }

  int64_t unsettled() const {
    int64_t passes = 0;
    for (const auto& replica : replicas_) passes += replica->unsettled();
    return passes;
  }

  // A step that is captured takes many times as long as those that replay it.
  void settle() {
    if (unsettled() == 0) return;  // nothing is captured here
    const int64_t steps = settle_steps(
        {}, [this] { return unsettled(); }, [this](int64_t count) { live(count, nullptr); });
    log_info("{} steps more until every shape that comes is captured", steps);
  }

  // Returns how many passes of them were no replays.
  int64_t time_steps() {
    log_info("timing the parts of {} steps", options_.steps);
    const int64_t before = unsettled();
    for (size_t rank = 0; rank < replicas_.size(); ++rank)
      profile_.replicas[rank].captures = replicas_[rank]->captures();
    live(options_.steps, &ProfiledReplica::timed);
    for (size_t rank = 0; rank < replicas_.size(); ++rank) {
      ProfiledReplica& found = profile_.replicas[rank];
      found.captures = replicas_[rank]->captures() - found.captures;
      found.feed = feed_->counters(static_cast<int>(rank));
    }
    return unsettled() - before;
  }

  void on_ranks(const std::function<void(size_t)>& work) {
    on_every_rank(profile_.replicas, work, [this](size_t rank) {
      if (!groups_.empty()) groups_[rank].reset();  // the others need not wait for it
    });
  }

  // Steps on batches of the feed. `into`: where they are recorded, or nowhere.
  void live(int64_t steps, std::vector<RecordedStep> ProfiledReplica::*into) {
    const int64_t first = next_step_;
    next_step_ += steps;
    on_ranks([&](size_t rank) {
      ProfiledReplica& found = profile_.replicas[rank];
      std::optional<BatchLease> lease;
      const auto next = [&](int64_t) {
        lease.reset();
        std::optional<BatchLease> batch = feed_->next(static_cast<int>(rank));
        if (!batch) throw Error(ErrorKind::internal, "the feed ended before the profile did");
        lease.emplace(std::move(*batch));
        return &**lease;
      };
      std::optional<StepRecorder> recorder;
      if (into) recorder.emplace(*found.device, origin_, steps);
      found.device->compute_stream().synchronize();
      const auto start = Clock::now();
      take_steps(rank, first, steps, next, recorder ? &*recorder : nullptr);
      if (into == &ProfiledReplica::timed) found.wall = seconds_since(start);
      if (into) found.*into = recorder->take();
      keep_batch(rank, **lease);
    });
  }

  using NextBatch = std::function<const Batch*(int64_t)>;
  void take_steps(size_t rank, int64_t first, int64_t steps, const NextBatch& next,
                  StepRecorder* recorder) {
    Replica& replica = *replicas_[rank];
    LossReader reader(replica.device());
    for (int64_t step = first; step < first + steps; ++step) {
      if (recorder) recorder->begin_step(step);
      const at::Tensor values = replica.step({.step = step,
                                              .learning_rate = plan_.learning_rate,
                                              .batch = next,
                                              .observer = recorder});
      {
        const StepMark mark(recorder, StepPart::read_back);
        reader.push(values, [](const std::vector<double>&) {});
      }
      if (recorder) recorder->end_step();
    }
    reader.drain();
    // Elsewhere the steps have run.
    if (replica.device().kind() == DeviceKind::cuda)
      replica.device().compute_stream().synchronize();
  }

  // A copy of the last one, to work on again and again.
  void keep_batch(size_t rank, const Batch& batch) {
    Batch& kept = last_batches_[rank];
    kept = batch;
    for (at::Tensor& field : kept.fields) field = field.clone();
    profile_.replicas[rank].device->compute_stream().synchronize();
  }

  void trace() {
    if (traced_steps() == 0) return;
    log_info("tracing the operations of {} steps", traced_steps());
    DoubleTrace both(any_cuda(profile_.replicas), /*linked=*/false, origin_);
    live(traced_steps(), &ProfiledReplica::traced);
    both.stop(profile_.operations, profile_.kernels);
  }

  // Seconds a step. A GPU that has rested is faster until it meets its power limit, and it rests
  // while a trace begins and ends: as many steps go before those that count.
  double again(bool recorded) {
    const int64_t steps = std::clamp<int64_t>(options_.steps, 2, 10);
    const int64_t first = next_step_ + steps;
    next_step_ += 2 * steps;
    std::vector<double> seconds(replicas_.size());
    on_ranks([&](size_t rank) {
      std::optional<StepRecorder> recorder;
      if (recorded) recorder.emplace(*profile_.replicas[rank].device, origin_, steps);
      const auto next = [&](int64_t) { return &last_batches_[rank]; };
      const bool cuda = profile_.replicas[rank].device->kind() == DeviceKind::cuda;
      if (cuda) take_steps(rank, first - steps, steps, next, nullptr);
      const double start = seconds_of_work(cuda, /*whole_program=*/false);
      take_steps(rank, first, steps, next, recorder ? &*recorder : nullptr);
      const double took = seconds_of_work(cuda, /*whole_program=*/false) - start;
      seconds[rank] = took / static_cast<double>(steps);
    });
    return *std::ranges::max_element(seconds);
  }

  void find_limits() {
    replicas_.clear();  // what follows needs their memory
    for (size_t rank = 0; rank < profile_.replicas.size(); ++rank) {
      ProfiledReplica& found = profile_.replicas[rank];
      found.limits = measure_limits(*found.device, config_.training.precision);
      if (found.device->kind() != DeviceKind::cuda || !profile_.kernels.failure.empty()) continue;
      log_info("asking how much work the kernels of {} are", found.device->name());
      TrainingWork work{.device = *found.device,
                        .stage = *stage_,
                        .training = config_.training,
                        .learning_rate = plan_.learning_rate,
                        .batch = last_batches_[rank]};
      std::string failure;
      found.rates = rates_of_training(work, failure);
      if (!failure.empty()) profile_.work_failure = failure;
    }
  }

  Communicator* group(size_t rank) const { return groups_.empty() ? nullptr : groups_[rank].get(); }

  const Config& config_;
  const ProfileOptions& options_;
  const TrainPlan plan_;
  const Clock::time_point origin_ = Clock::now();
  std::unique_ptr<Stage> stage_;
  std::vector<std::unique_ptr<Communicator>> groups_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::unique_ptr<Feed> feed_;
  std::vector<uint64_t> waiting_;  // bytes of batches that wait, by rank
  std::vector<Batch> last_batches_;
  int64_t next_step_ = 1;
  Profile profile_;
};

}  // namespace

Profile profile_training(const Config& config, const ProfileOptions& options) {
  if (options.steps < 1)
    throw Error(ErrorKind::usage, fmt::format("a profile of {} steps was asked for; expected at "
                                              "least 1",
                                              options.steps));
  return TrainingProfile(config, options).run();
}

}  // namespace tandem
