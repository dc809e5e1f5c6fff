#include "train/train_run.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <thread>

#include "data/corpus/dataset.h"
#include "data/feed/speech_feed.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "models/xtts/trained_stages.h"
#include "tandem/error.h"
#include "train/rules/schedule.h"
#include "train/stages/low_precision.h"
#include "util/atomic_file.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/shell_word.h"
#include "util/text.h"

namespace tandem {
namespace {

// Without the paths, which say where things are, not what they are: that the stages know.
std::string_view without_paths(std::string_view fingerprint) {
  return fingerprint.substr(0, fingerprint.find(" data="));
}

std::string full_path(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, ignored);
  return whole.empty() ? path : whole.string();
}

// "section.key" -> value, of what print_config writes.
std::map<std::string, std::string> values_of(const std::string& config_yaml) {
  std::map<std::string, std::string> values;
  std::string section;
  for (const std::string& line : split(config_yaml, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.starts_with("#")) continue;
    if (!line.starts_with(" ")) {
      section = line.substr(0, colon);
    } else {
      const size_t end = std::min(line.find("  # "), line.size());
      values[section + "." + trim(line.substr(0, colon))] =
          trim(line.substr(colon + 1, end - colon - 1));
    }
  }
  return values;
}

// "key=value key=value", or a word without a value.
std::map<std::string, std::string> words_of(std::string_view fingerprint) {
  std::map<std::string, std::string> words;
  for (const std::string& word : split(fingerprint, ' ')) {
    const size_t equals = std::min(word.find('='), word.size());
    words[word.substr(0, equals)] = word.substr(std::min(equals + 1, word.size()));
  }
  return words;
}

// Of what both say: a run of an earlier version says less.
bool contradict(std::string_view before, std::string_view now) {
  const std::map<std::string, std::string> old = words_of(without_paths(before));
  for (const auto& [key, value] : words_of(without_paths(now)))
    if (const auto known = old.find(key); known != old.end() && known->second != value) return true;
  return false;
}

// Steps that take all batches of the epochs; the last one begins the next epoch where they do not
// come out even.
int64_t steps_of_epochs(int64_t epochs, int64_t batches, int64_t accumulation) {
  return (epochs * batches + accumulation - 1) / accumulation;
}

void check_words(const RunChoice& choice, const std::string& file, const std::string& now) {
  std::error_code ignored;
  if (!choice.resumes || !std::filesystem::exists(choice.path / file, ignored)) return;
  const std::string before = trim(read_file(choice.path / file));
  if (!contradict(before, now)) return;
  throw Error(ErrorKind::config,
              fmt::format("`{}` holds a run with other settings: it has {}; asked for was {}",
                          choice.path.string(), without_paths(before), without_paths(now)))
      .hint(
          "use the same settings, and what it started from, to go on; remove that folder "
          "to train this stage anew, or give --fresh to start again in a new one");
}

// A folder that is not there is made, and what was made is removed again.
void check_can_be_made(std::filesystem::path folder) {
  std::vector<std::filesystem::path> made;
  std::error_code ignored;
  for (; !folder.empty() && !std::filesystem::exists(folder, ignored);
       folder = folder.parent_path())
    made.push_back(folder);
  if (made.empty()) return check_may_write(folder);
  make_folder(made.front());
  for (const std::filesystem::path& one : made) std::filesystem::remove(one, ignored);
}

}  // namespace

void check_run_folder(const RunChoice& choice, const Config& config) {
  check_words(choice, "fingerprint", run_fingerprint(config));
  check_can_be_made(choice.path);
  const auto& validation = config.data.val_data;
  if (config.training.stage == "bytes" || !validation) return;
  if (!std::filesystem::exists(*validation)) detect_dataset(*validation);  // says so
}

std::string run_fingerprint(const Config& config) {
  std::string text = fmt::format(
      "stage={} size={} seed={} batch_size={} accumulation={} data={}", config.training.stage,
      config.model.size, config.training.seed, config.data.batch_size,
      config.training.gradient_accumulation_steps, full_path(config.data.train_data.value_or("")));
  if (config.model.pretrained) text += " pretrained=" + full_path(*config.model.pretrained);
  return text;
}

TrainRun::TrainRun(const Config& config, const TrainHooks& hooks, const TrainOptions& options)
    : config_(config),
      hooks_(hooks),
      options_(options),
      plan_(make_plan(config)),
      fault_(fault_from_environment()) {
  if (!config.data.train_data) {
    throw Error(ErrorKind::config, "no training data was given").hint("add --train-data PATH");
  }
}

TrainResult TrainRun::run() {
  throw_if_stopped("before a step was taken", options_.begins_with);
  const std::string fingerprint = run_fingerprint(config_);
  const RunChoice choice =
      choose_run_folder(config_.paths.checkpoint_dir, options_.fresh, fingerprint);
  check_run_folder(choice, config_);
  set_precision(config_.training.precision, config_.training.deterministic);
  stage_ = make_stage(config_, DeviceRegistry::get().find(plan_.strategy.data_device),
                      (choice.path / "bad_files.tsv").string());
  for (const std::string& name : plan_.strategy.replicas) {
    LogicalDevice& device = DeviceRegistry::get().find(name);
    const DeviceScope scope(device);
    stage_->check_device(device);
  }
  const int64_t batches = stage_->batches_an_epoch();
  total_steps_ = config_.training.max_steps.value_or(
      steps_of_epochs(config_.training.epochs, batches, plan_.accumulation));
  schedule_ = schedule_options(
      config_.training, static_cast<double>(batches) / static_cast<double>(plan_.accumulation));
  schedule_.peak = plan_.learning_rate;
  open_folder(choice, fingerprint);
  stage_->begin();
  announce_pipeline(plan_);
  announce_model_place(plan_);
  create_replicas();
  // Not before all of it agrees and is loaded: who is refused changes nothing.
  for (const auto& [file, words] : fingerprints_)
    write_file_atomically(folder_.path() / file, words + "\n");
  announce_step(plan_, config_);
  if (config_.training.stage != "bytes") {
    announce_loading(config_.data);
  } else if (config_.data.val_data) {
    log_warning("data.val_data changes nothing: the bytes stage holds out a tenth of its data");
  }
  result_.folder = folder_.path().string();
  result_.first_step = result_.last_step = state_.step;
  result_.last_loss = state_.last_loss;
  if (!state_.owes_checks && is_at_its_end()) {
    result_.already_finished = true;
    const std::string has = state_.step >= total_steps_
                                ? fmt::format("has all {} steps", state_.step)
                                : fmt::format("ended after step {}", state_.step);
    if (state_.finished) {
      log_info("nothing to do: `{}` {}", result_.folder, has);
    } else {
      log_info("`{}` {}, but was stopped before its model was written", result_.folder, has);
      if (hooks_.on_start) hooks_.on_start(result_.folder, state_.step, total_steps_);
      write_model();
    }
    return result_;
  }
  write_settings();
  if (hooks_.on_start) hooks_.on_start(folder_.path().string(), state_.step, total_steps_);
  show_plan();
  throw_if_stopped(fmt::format("after step {} of the run in `{}`", state_.step, result_.folder));
  start_feed();
  run_threads();
  if (hooks_.on_feed) hooks_.on_feed({});
  drop_feeds();
  for (const auto& device : DeviceRegistry::get().gpus()) {
    result_.devices[device->name()] = {.operations = device->operations().total(),
                                       .peak_bytes = device->memory().peak(),
                                       .by_name = device->operations().by_name()};
  }
  throw_root_cause();
  writer_.wait();
  if (const std::string words = stage_->closing_words(); !words.empty()) log_info("{}", words);
  finish();
  return result_;
}

// The model folder of a run that reached its end, or the word that it was stopped.
void TrainRun::finish() {
  if (!state_.finished)
    throw_if_stopped(
        fmt::format("after step {}; the checkpoint is saved in `{}`", state_.step, result_.folder));
  write_model();
}

void TrainRun::throw_if_stopped(const std::string& when, const std::string& hint) const {
  const StopRequest stop = stop_requested();
  if (stop == StopRequest::none) return;
  const bool interrupted = stop == StopRequest::interrupted;
  throw Error(interrupted ? ErrorKind::interrupted : ErrorKind::terminated,
              fmt::format("{} {}", interrupted ? "interrupted" : "terminated", when))
      .hint(!hint.empty()                   ? hint
            : options_.goes_on_with.empty() ? "the same command goes on from there"
                                            : options_.goes_on_with);
}

// The best state, if one was found, is what people want to use. The run is finished when it is
// there: one that was killed before writes it when it is started again.
void TrainRun::write_model() {
  const std::optional<Checkpoint> best = folder_.load_best();
  if (!best) return;
  FolderDraft draft(folder_.path() / "model");
  stage_->export_model(best->average.empty() ? best->weights : best->average, best->buffers,
                       draft.path().string());
  if (!std::filesystem::is_empty(draft.path())) draft.commit();
  folder_.mark_finished();
  const std::string model = (folder_.path() / "model").string();
  if (config_.training.stage == "bytes" || config_.training.stage == "dvae") return;
  if (trained_stages(model).contains("decoder")) {
    log_info("the voice is in `{}`: tandem synthesize --model {}", model, shell_word(model));
  } else {
    log_info("the GPT is in `{}`: --stage decoder --pretrained {} gives it a voice", model,
             shell_word(model));
  }
}

bool TrainRun::is_at_its_end() const {
  const TrainingConfig& training = config_.training;
  const int64_t patience = training.early_stop_patience;
  return state_.step >= total_steps_ ||
         (patience > 0 && state_.validations_without_gain >= patience) ||
         (training.max_minutes && state_.seconds >= *training.max_minutes * 60);
}

double TrainRun::seconds() const { return seconds_before_ + seconds_since(started_); }

void TrainRun::show_plan() {
  PlanRows rows = plan_rows(plan_, config_, replicas_.front()->bytes_by_part());
  for (const auto& fact : stage_->facts()) rows.push_back(fact);
  const int64_t batches = stage_->batches_an_epoch(), each = plan_.accumulation;
  if (const double seconds = stage_->seconds_a_batch(); seconds > 0)
    rows.emplace_back("a step takes",
                      fmt::format("{:.0f} {}, {:.1f} s of sound on average",
                                  stage_->tokens_a_batch() * static_cast<double>(each),
                                  stage_->token_name(), seconds * static_cast<double>(each)));
  rows.emplace_back("steps an epoch", batches % each == 0
                                          ? fmt::format("{}", batches / each)
                                          : fmt::format("{:.2f}", static_cast<double>(batches) /
                                                                      static_cast<double>(each)));
  for (const auto& [name, value] : rows) log_info("  {:<20} {}", name, value);
  if (hooks_.on_plan) hooks_.on_plan(rows);
}

void TrainRun::open_folder(const RunChoice& choice, const std::string& fingerprint) {
  folder_ = RunFolder(choice.path);
  make_folder(choice.path);
  lock_.emplace(choice.path);
  folder_.remove_leftovers();
  // Settings and corpus; each in words that say what is different.
  fingerprints_ = {{"fingerprint", fingerprint}, {"corpus", stage_->fingerprint()}};
  for (const auto& [file, now] : fingerprints_) check_words(choice, file, now);
}

void TrainRun::write_settings() const {
  const std::filesystem::path file = folder_.path() / "config.yaml";
  if (state_.step > 0 && std::filesystem::exists(file)) {
    const std::map<std::string, std::string> before = values_of(read_file(file));
    for (const auto& [key, value] : values_of(options_.resolved_config_yaml)) {
      const auto old = before.find(key);
      if (old != before.end() && old->second != value)
        log_info("goes on with {} = {}, which was {}", key, value, old->second);
    }
  }
  write_file_atomically(file, options_.resolved_config_yaml);
}

void TrainRun::create_replicas() {
  DeviceRegistry& registry = DeviceRegistry::get();
  const std::optional<Checkpoint> checkpoint = folder_.load_latest();
  std::vector<LogicalDevice*> devices;
  std::vector<MemoryWatch::Watched> watched;
  if (plan_.strategy.kind == StrategyKind::dual)
    watched.push_back({&registry.find(plan_.strategy.data_device), "Data"});
  for (const std::string& name : plan_.strategy.replicas) devices.push_back(&registry.find(name));
  if (devices.size() > 1) {
    const std::chrono::duration<double> timeout(config_.training.collective_timeout);
    groups_ = make_in_process_group(devices,
                                    std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
  }
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    watched.push_back({devices[rank], "Model"});
    announce_creation(plan_, devices[rank]->name());
    DeviceScope scope(*devices[rank]);
    replicas_.push_back(std::make_unique<Replica>(*devices[rank],
                                                  stage_->make_learner(*devices[rank]),
                                                  config_.training, group(static_cast<int>(rank))));
    if (!checkpoint) continue;
    replicas_.back()->load(*checkpoint);
    if (rank < checkpoint->state.divisions.size())
      replicas_.back()->divide(checkpoint->state.divisions[rank]);
  }
  if (checkpoint) {
    state_ = checkpoint->state;
    seconds_before_ = state_.seconds;
    log_info("run folder: {}, goes on after step {} (loss {:.4f})", folder_.path().string(),
             state_.step, state_.last_loss);
  } else {
    log_info("run folder: {}", folder_.path().string());
  }
  if (config_.training.enable_memory_isolation && devices.front()->kind() == DeviceKind::cpu)
    log_warning("training.enable_memory_isolation changes nothing: {} has no limit",
                devices.front()->name());
  if (config_.training.enable_memory_isolation) memory_ = std::make_unique<MemoryWatch>(watched);
  failures_.resize(replicas_.size());
  waits_since_ = std::vector<std::atomic<double>>(replicas_.size());
  alone_seen_.resize(replicas_.size());
}

std::vector<LogicalDevice*> TrainRun::model_devices() const {
  std::vector<LogicalDevice*> models;
  for (const auto& replica : replicas_) models.push_back(&replica->device());
  return models;
}

void TrainRun::start_feed() {
  FeedOptions options = feed_options(config_.data);
  options.first_batch = state_.next_batch;
  options.end_batch = total_steps_ * plan_.accumulation;
  options.capacity = plan_.queue_capacity;
  if (fault_ && fault_->at_data())
    faulty_batches_ =
        std::make_unique<FaultyBatches>(stage_->batches(), *fault_, plan_.accumulation);
  feed_ = std::make_unique<Feed>(faulty_batches_ ? *faulty_batches_ : stage_->batches(),
                                 DeviceRegistry::get().find(plan_.strategy.data_device),
                                 model_devices(), options);
  if (hooks_.on_feed) {
    hooks_.on_feed([this] {
      const FeedCounters counters = feed_->counters(0);
      const auto reading = [](const char* name, const QueueCounters& queue) {
        return QueueReading{name, queue.items, queue.put_wait, queue.get_wait, queue.empty_time};
      };
      return std::vector<QueueReading>{reading("loaded", counters.loaded),
                                       reading("prepared", counters.prepared),
                                       reading("moved", counters.moved)};
    });
  }
  if (plan_.strategy.kind != StrategyKind::dual) return;
  const double limit = config_.data.model_start_delay;
  say(fmt::format("🕐 Multi-GPU Mode: Waiting up to {:.1f}s for data pipeline to warm up...",
                  limit));
  const auto start = Clock::now();
  const size_t ready = feed_->wait_until_full(std::chrono::duration<double>(limit));
  say(fmt::format("✅ Model training starting now ({}/{} batches ready after {:.1f}s)", ready,
                  feed_->capacity(), seconds_since(start)));
}

}  // namespace tandem
