#include "observe/diagnose/training_subject.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "data/corpus/clip_sound.h"
#include "data/corpus/speech_corpus.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "observe/diagnose/kept_features.h"
#include "tandem/error.h"
#include "train/nan_watch.h"
#include "train/stages/low_precision.h"
#include "util/clock.h"

namespace tandem {
namespace fs = std::filesystem;

Config fit_for_diagnosis(Config config) {
  const std::string data = config.data.train_data.value_or("");
  const fs::path path(data);
  const bool speech = fs::is_directory(path) || path.extension() == ".index" ||
                      path.extension() == ".jsonl" || path.extension() == ".tar";
  std::string& stage = config.training.stage;
  if (stage == "all" || (stage == "bytes" && speech))
    stage = config.model.pretrained ? "gpt" : "dvae";
  return config;
}

TrainingSubject::TrainingSubject(const Config& config)
    : config_(config),
      plan_(make_plan(config_)),
      fault_(fault_from_environment()),
      debugging_(config.training.enable_eager_debug) {
  if (!config.data.train_data)
    throw Error(ErrorKind::config, "no data was given").hint("add --data DIR");
  set_precision(config.training.precision, config.training.deterministic);
  DeviceRegistry& registry = DeviceRegistry::get();
  for (const std::string& name : plan_.strategy.replicas) models_.push_back(&registry.find(name));
  stage_ = make_stage(config_, registry.find(plan_.strategy.data_device), "");
  replicas_.resize(models_.size());
  steps_.resize(models_.size());
}

TrainingSubject::~TrainingSubject() = default;

LogicalDevice& TrainingSubject::data_device() {
  return DeviceRegistry::get().find(plan_.strategy.data_device);
}

Circumstances TrainingSubject::circumstances() {
  Circumstances now{.config = config_,
                    .strategy = plan_.strategy.kind,
                    .visible_gpus = static_cast<int>(DeviceRegistry::get().gpus().size()),
                    .queue_capacity = plan_.queue_capacity,
                    .data_on_model = &data_device() == models_.front()};
  note_kept_features(now);
  now.decodes = config_.training.stage != "bytes" && !std::ranges::all_of(files(), is_plain_wav);
  return now;
}

FeedOptions TrainingSubject::feeding() const {
  FeedOptions options = feed_options(config_.data);
  options.end_batch = INT64_MAX;
  options.capacity = plan_.queue_capacity;
  return options;
}

std::unique_ptr<Replica> TrainingSubject::make_replica(size_t rank, Communicator* group) {
  DeviceScope scope(*models_[rank]);
  return std::make_unique<Replica>(*models_[rank], stage_->make_learner(*models_[rank]),
                                   config_.training, group);
}

// One at a time, so that a machine that just holds the replicas holds them here as well.
void TrainingSubject::work_alone(int rank) {
  const auto at_rank = static_cast<size_t>(rank);
  if (groups_.empty() && replicas_[at_rank]) return;
  for (auto& replica : replicas_) replica.reset();
  groups_.clear();
  replicas_[at_rank] = make_replica(at_rank, nullptr);
}

void TrainingSubject::work_together() {
  if (models_.size() == 1) return work_alone(0);
  for (auto& replica : replicas_) replica.reset();
  const std::chrono::duration<double> timeout(config_.training.collective_timeout);
  groups_ = make_in_process_group(models_,
                                  std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
  for (size_t rank = 0; rank < models_.size(); ++rank)
    replicas_[rank] = make_replica(rank, groups_[rank].get());
}

void TrainingSubject::gave_up(int rank) {
  if (!groups_.empty()) groups_[static_cast<size_t>(rank)].reset();
}

void TrainingSubject::step(int rank, const NextBatch& next) {
  const auto at_rank = static_cast<size_t>(rank);
  Replica& replica = *replicas_[at_rank];
  const int64_t step = ++steps_[at_rank];
  const auto start = Clock::now();
  double waited = 0;
  StepRequest request{.step = step, .learning_rate = plan_.learning_rate};
  request.batch = [&](int64_t) {
    const auto asked = Clock::now();
    const Batch* batch = next();
    waited += seconds_since(asked);
    return batch;
  };
  std::optional<NanWatch> watch;
  if (debugging_) watch.emplace(replica.learner().phases(), step);
  replica.step(request);
  if (watch) watch->check();
  // A simulated device computes on this thread; its slowness is made up for here.
  const double slowness = models_[at_rank]->info().slowness;
  if (models_[at_rank]->kind() == DeviceKind::simulated && slowness > 1)
    std::this_thread::sleep_for(
        std::chrono::duration<double>((seconds_since(start) - waited) * (slowness - 1)));
  if (fault_ && fault_->kind == FaultKind::slow && fault_->strikes(rank, step))
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

bool TrainingSubject::queues_work() { return models_.front()->kind() == DeviceKind::cuda; }

int64_t TrainingSubject::unsettled(int rank) const {
  return replicas_[static_cast<size_t>(rank)]->unsettled();
}

int64_t TrainingSubject::parts() const {
  int64_t most = 1;
  for (const auto& replica : replicas_)
    if (replica) most = std::max(most, replica->divisions());
  return most;
}

bool TrainingSubject::turn_debugging(bool on) {
  if (!config_.training.enable_eager_debug) return false;
  debugging_ = on;
  return true;
}

void TrainingSubject::look_at_files() {
  if (clip_bytes_ >= 0) return;
  constexpr int64_t most_files = 20000;
  clip_bytes_ = 0;
  if (config_.training.stage == "bytes") {
    files_ = {*config_.data.train_data};
    return;
  }
  const SpeechCorpus corpus = SpeechCorpus::open(*config_.data.train_data,
                                                 {.language = config_.data.language.value_or("")});
  const ClipIndex& index = corpus.index();
  const int64_t count = std::min(most_files, index.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i * index.size() / count;
    clip_bytes_ += static_cast<double>(index[row].bytes) / static_cast<double>(count);
    const std::string path = index.full_path(row);
    // Clips of one file follow each other.
    if (files_.empty() || files_.back() != path) files_.push_back(path);
  }
}

std::vector<std::string> TrainingSubject::files() {
  look_at_files();
  return files_;
}

double TrainingSubject::bytes_read_a_batch() {
  look_at_files();
  return clip_bytes_ * static_cast<double>(config_.data.batch_size);
}

}  // namespace tandem
