#include "train/train_run.h"

#include <fmt/format.h>

#include <cmath>
#include <thread>

#include "device/device_scope.h"
#include "device/registry.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

// What must be the same for a checkpoint to be continued, in words.
std::string fingerprint_of(const Config& config) {
  return fmt::format("stage={} size={} seed={} batch_size={} accumulation={} data={}",
                     config.training.stage, config.model.size, config.training.seed,
                     config.data.batch_size, config.training.gradient_accumulation_steps,
                     config.data.train_data.value_or(""));
}

std::string required_train_data(const Config& config) {
  if (config.data.train_data) return *config.data.train_data;
  throw Error(ErrorKind::config, "no training data was given").hint("add --train-data FILE");
}

}  // namespace

TrainRun::TrainRun(const Config& config, const TrainHooks& hooks, const TrainOptions& options)
    : config_(config),
      hooks_(hooks),
      options_(options),
      plan_(make_plan(config)),
      fault_(fault_from_environment()),
      corpus_(std::make_unique<ByteCorpus>(required_train_data(config), plan_.size.context)) {
  const int64_t steps_an_epoch =
      std::max<int64_t>(1, corpus_->train_windows() / (plan_.batch_size * plan_.accumulation));
  total_steps_ = config.training.max_steps.value_or(config.training.epochs * steps_an_epoch);
}

TrainResult TrainRun::run() {
  open_folder();
  announce_pipeline(plan_);
  announce_model_place(plan_);
  create_replicas();
  if (hooks_.on_start) hooks_.on_start(folder_.path().string(), state_.step, total_steps_);
  result_.folder = folder_.path().string();
  result_.first_step = result_.last_step = state_.step;
  if (state_.step >= total_steps_) {
    log_info("nothing to do: `{}` has all {} steps", result_.folder, total_steps_);
    result_.already_finished = true;
    return result_;
  }
  start_feed();
  run_threads();
  feed_.reset();
  for (const auto& device : DeviceRegistry::get().gpus()) {
    result_.devices[device->name()] = {.operations = device->operations().total(),
                                       .peak_bytes = device->memory().peak(),
                                       .by_name = device->operations().by_name()};
  }
  throw_root_cause();
  const StopRequest stop = stop_requested();
  if (state_.step < total_steps_ && stop != StopRequest::none) {
    const bool interrupted = stop == StopRequest::interrupted;
    throw Error(
        interrupted ? ErrorKind::interrupted : ErrorKind::terminated,
        fmt::format("{} after step {}; the checkpoint is saved in `{}`",
                    interrupted ? "interrupted" : "terminated", state_.step, result_.folder))
        .hint("the same command goes on from there");
  }
  return result_;
}

void TrainRun::open_folder() {
  const std::string fingerprint = fingerprint_of(config_);
  const RunChoice choice =
      choose_run_folder(config_.paths.checkpoint_dir, options_.fresh, fingerprint);
  folder_ = RunFolder(choice.path);
  make_folder(choice.path);
  FolderDraft::remove_leftovers(choice.path);
  if (choice.resumes) {
    const std::string before = trim(read_file(choice.path / "fingerprint"));
    if (before != fingerprint) {
      throw Error(ErrorKind::config,
                  fmt::format("`{}` holds a run with other settings: it has {}; asked for was {}",
                              choice.path.string(), before, fingerprint))
          .hint("use the same settings to go on, or --fresh to start again in a new folder");
    }
  }
  write_file_atomically(choice.path / "fingerprint", fingerprint + "\n");
  write_file_atomically(choice.path / "config.yaml", options_.resolved_config_yaml);
}

void TrainRun::create_replicas() {
  DeviceRegistry& registry = DeviceRegistry::get();
  const std::optional<Checkpoint> checkpoint = folder_.load_latest();
  std::vector<LogicalDevice*> devices;
  std::vector<MemoryWatch::Watched> watched;
  if (plan_.strategy.kind == StrategyKind::dual)
    watched.push_back({&registry.find(plan_.strategy.data_device), "Data"});
  for (const std::string& name : plan_.strategy.replicas) {
    LogicalDevice& device = registry.find(name);
    devices.push_back(&device);
    watched.push_back({&device, "Model"});
    announce_creation(plan_, name);
    replicas_.push_back(std::make_unique<Replica>(device, plan_.size,
                                                  static_cast<uint64_t>(config_.training.seed),
                                                  config_.training.learning_rate));
    if (checkpoint) replicas_.back()->load(*checkpoint);
  }
  if (checkpoint) {
    state_ = checkpoint->state;
    log_info("run folder: {}, goes on after step {} (loss {:.4f})", folder_.path().string(),
             state_.step, state_.last_loss);
  } else {
    log_info("run folder: {}", folder_.path().string());
  }
  if (devices.size() > 1) {
    const std::chrono::duration<double> timeout(config_.training.collective_timeout);
    groups_ = make_in_process_group(devices,
                                    std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
  }
  if (config_.training.enable_memory_isolation) memory_ = std::make_unique<MemoryWatch>(watched);
  failures_.resize(replicas_.size());
}

void TrainRun::start_feed() {
  batches_ = std::make_unique<ByteBatches>(*corpus_, static_cast<uint64_t>(config_.training.seed),
                                           plan_.batch_size);
  std::vector<LogicalDevice*> models;
  for (const auto& replica : replicas_) models.push_back(&replica->device());
  FeedOptions options = feed_options(config_.data);
  options.first_batch = state_.next_batch;
  options.end_batch = total_steps_ * plan_.accumulation;
  options.capacity = plan_.queue_capacity;
  options.workers = 1;  // nothing is read or decoded
  feed_ = std::make_unique<Feed>(*batches_, DeviceRegistry::get().find(plan_.strategy.data_device),
                                 models, options);
  if (plan_.strategy.kind != StrategyKind::dual) return;
  const double limit = config_.data.model_start_delay;
  say(fmt::format("🕐 Multi-GPU Mode: Waiting up to {:.1f}s for data pipeline to warm up...",
                  limit));
  const auto start = Clock::now();
  const size_t ready = feed_->wait_until_full(std::chrono::duration<double>(limit));
  say(fmt::format("✅ Model training starting now ({}/{} batches ready after {:.1f}s)", ready,
                  feed_->capacity(), seconds_since(start)));
}

void TrainRun::run_threads() {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < replica_count(); ++rank) {
    threads.emplace_back([this, rank] {
      const auto at_rank = static_cast<size_t>(rank);
      try {
        work(rank);
      } catch (...) {
        failures_[at_rank] = std::current_exception();
        if (!groups_.empty()) groups_[at_rank].reset();  // the others need not wait for the timeout
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The rank that failed on its own account, not one that only lost it.
void TrainRun::throw_root_cause() const {
  std::exception_ptr peer;
  for (const std::exception_ptr& failure : failures_) {
    if (!failure) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::peer) throw;
      if (!peer) peer = failure;
    }
  }
  if (peer) std::rethrow_exception(peer);
}

}  // namespace tandem
