// What a run does between steps: validation, samples, proofs, checkpoints.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "device/device_scope.h"
#include "device/registry.h"
#include "device/torch_errors.h"
#include "tandem/error.h"
#include "train/train_worker.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/shell_word.h"
#include "util/text.h"

namespace tandem {
namespace {

at::TensorOptions scope_options() {
  return at::TensorOptions(DeviceScope::current()->torch_device()).dtype(at::kFloat);
}

}  // namespace

// Others' collectives would run into their timeout if they waited there.
void TrainRun::alone(int rank, const std::function<void()>& work) {
  if (rank == 0) {
    work();
    std::lock_guard lock(alone_mutex_);
    ++alone_done_;
    alone_changed_.notify_all();
    return;
  }
  std::unique_lock lock(alone_mutex_);
  int64_t& mine = alone_seen_[static_cast<size_t>(rank)];
  alone_changed_.wait(lock, [&] { return alone_done_ > mine || alone_failed_; });
  if (alone_done_ == mine)
    throw Error(ErrorKind::peer, fmt::format("rank 0 failed, and rank {} cannot go on", rank));
  ++mine;  // no more than that: rank 0 may be at the next already
}

// Whoever asks a run to stop waits for it: validation and samples are left for the run that goes
// on.
bool TrainRun::check(Worker& worker, int64_t step, bool last, bool saves) {
  const bool stopping = step >= stop_after_;
  const bool validates = (due(config_.training.val_step, step) || last) && stage_->validation() &&
                         stage_->validation_batches() > 0;
  const bool samples = (due(config_.observe.sample_step, step) || last) && hooks_.on_sample;
  const RunState before = worker.rank == 0 ? state_ : RunState();
  worker.best = false;
  try {
    worker.owes_checks =
        stopping && !time_is_up_ ? validates || samples : validates && !validate(worker, step);
    if (samples && !worker.owes_checks) make_samples(worker, step);
  } catch (...) {
    keep_step(worker, step, before);
    throw;
  }
  worker.finished = !worker.owes_checks && (last || worker.early_stop.should_stop());
  const bool ends = stopping || worker.owes_checks || worker.finished;
  if (saves || ends || worker.best || due(config_.training.save_step, step)) {
    // The one before must be on the disk first, and a slow one takes longer than a collective
    // waits.
    alone(worker.rank, [&] { writer_.wait(); });
    save(worker, step);
  }
  return !ends;
}

// What was trained is not lost with a validation that failed; the run that goes on begins with it,
// and with what was known before it.
void TrainRun::keep_step(Worker& worker, int64_t step, const RunState& before) {
  try {
    if (worker.rank != 0 || !worker.replica.take_own_weights()) return;
    const int64_t skipped = state_.skipped;  // the last of them were heard of meanwhile
    state_ = before;
    state_.skipped = skipped;
    worker.best = worker.finished = false;
    worker.owes_checks = true;
    save(worker, step);
    writer_.wait();
  } catch (const std::exception& error) {
    log_debug("step {} could not be kept: {}", step, error.what());
  }
}

bool TrainRun::validate(Worker& worker, int64_t step) {
  worker.reader.drain();
  alone(worker.rank, [&] {
    FeedOptions options = feed_options(config_.data);
    options.first_batch = 0;
    options.end_batch = stage_->validation_batches();
    options.capacity = std::min<size_t>(8, plan_.queue_capacity);
    auto feed = std::make_unique<Feed>(*stage_->validation(),
                                       DeviceRegistry::get().find(plan_.strategy.data_device),
                                       model_devices(), options);
    const std::lock_guard lock(alone_mutex_);
    // Whoever failed before it was there could not stop it.
    if (rank_failed_) throw Error(ErrorKind::peer, "another rank failed");
    validation_feed_ = std::move(feed);
  });
  if (fault_ && fault_->kind == FaultKind::judge && fault_->strikes(worker.rank, step))
    throw Error(ErrorKind::internal,
                fmt::format("fault on purpose at rank {}, behind step {}", worker.rank, step));
  worker.replica.swap_average();
  const std::vector<std::string> names = worker.replica.learner().measures();
  // Sums, counts, and whether a rank gave up.
  at::Tensor all = at::zeros({3, static_cast<int64_t>(names.size())}, scope_options());
  at::Tensor tally = at::zeros({worker.replica.learner().tally()}, scope_options());
  while (const std::optional<BatchLease> batch = validation_feed_->next(worker.rank)) {
    if (stop_requested() != StopRequest::none) {
      all[2].fill_(1);
      validation_feed_->stop();
      break;
    }
    const Measured part = worker.replica.validate(**batch);
    all[0] += part.sums;
    all[1] += part.counts;
    if (part.tally.defined()) tally += part.tally;
  }
  worker.replica.swap_average();
  if (group(worker.rank)) {
    group(worker.rank)->all_reduce(all, Reduce::sum)->wait();
    if (tally.numel() > 0) group(worker.rank)->all_reduce(tally, Reduce::sum)->wait();
  }
  const at::Tensor seen = all.to(at::kCPU, at::kDouble);
  const at::Tensor means = seen[0] / seen[1].clamp_min(1e-9);
  const auto* values = means.const_data_ptr<double>();
  const bool given_up = seen[2][0].item<double>() > 0;
  // The others may still read from the feed's last batch.
  if (group(worker.rank)) group(worker.rank)->barrier();
  if (worker.rank == 0) {
    std::unique_ptr<Feed> over;
    const std::lock_guard lock(alone_mutex_);
    over = std::move(validation_feed_);
  }
  if (given_up) return false;
  const int64_t from = stage_->compared_from();
  if (step >= from) worker.early_stop.forget_before(from);
  worker.best = worker.early_stop.validated(step, values[0]);
  if (worker.rank != 0) return true;
  const EarlyStopState& stopping = worker.early_stop.state();
  if (worker.best) state_.best_loss = values[0], state_.best_step = step;
  if (std::isfinite(stopping.counted)) state_.counted_loss = stopping.counted;
  state_.validations_without_gain = stopping.waited;
  result_.validation_loss = values[0];
  if (worker.early_stop.should_stop()) {
    log_info("the validation loss has not improved for {} validations: stopping after step {}",
             stopping.waited, step);
  }
  if (!hooks_.on_step) return true;
  StepReport report{.step = step,
                    .total_steps = total_steps_,
                    .validation = true,
                    .best = worker.best,
                    .loss = values[0]};
  for (size_t i = 1; i < names.size(); ++i) report.terms.emplace_back(names[i], values[i]);
  for (const auto& term : worker.replica.learner().read_tally(tally.to(at::kCPU)))
    report.terms.push_back(term);
  hooks_.on_step(report);
  return true;
}

std::vector<int64_t> TrainRun::divisions() const {
  std::vector<int64_t> all;
  for (const auto& replica : replicas_) all.push_back(replica->divisions());
  return std::ranges::max(all) > 1 ? all : std::vector<int64_t>();
}

void TrainRun::make_samples(Worker& worker, int64_t step) {
  worker.reader.drain();
  worker.replica.swap_average();
  alone(worker.rank, [&] {
    folder_must_be_there();
    at::NoGradGuard no_grad;
    std::vector<Sample> samples;
    try {
      samples = stage_->samples(worker.replica.learner());
    } catch (const std::exception& error) {
      const Explanation why = explain_with_torch(error);
      if (why.kind != ErrorKind::memory) throw;
      log_warning("no samples of step {}: {}", step, why.sentence);
    }
    for (const Sample& sample : samples) {
      SampleReport report{
          .step = step, .name = sample.name, .rate = sample.rate, .text = sample.text};
      const auto numbers = [](const at::Tensor& tensor) {
        const at::Tensor flat = tensor.to(at::kCPU, at::kFloat).contiguous();
        const auto* data = flat.const_data_ptr<float>();
        return std::vector<float>(data, data + flat.numel());
      };
      if (sample.wave.defined()) report.wave = numbers(sample.wave);
      if (sample.mel.defined()) {
        report.mel = numbers(sample.mel);
        report.mels = sample.mel.size(0);
        report.frames = sample.mel.size(1);
      }
      hooks_.on_sample(report);
    }
  });
  worker.replica.swap_average();
}

void TrainRun::check_replicas(int rank, int64_t step) {
  if (!group(rank)) return;
  std::vector<at::Tensor> sums;
  group(rank)->gather(replica(rank).checksum(), sums, 0)->wait();
  if (rank != 0) return;
  for (size_t other = 1; other < sums.size(); ++other) {
    if (at::equal(sums[0], sums[other])) continue;
    throw Error(ErrorKind::peer,
                fmt::format("the weights of rank {} differ from those of rank 0 after step {}",
                            other, step))
        .hint("start again from the last checkpoint; if it happens again, suspect that device");
  }
}

// What is written into a folder that was moved away would make it anew, without what was in it.
void TrainRun::folder_must_be_there() const {
  if (std::filesystem::exists(folder_.path() / "fingerprint")) return;
  throw Error(ErrorKind::io,
              fmt::format("`{}` is gone: it was moved or removed while the run was writing into it",
                          folder_.path().string()))
      .hint("put it back; the same command goes on from the last checkpoint in it");
}

void TrainRun::save(Worker& worker, int64_t step) {
  worker.reader.drain();
  if (worker.rank != 0) return;
  state_.step = step;
  state_.next_batch = step * plan_.accumulation;
  state_.finished = worker.finished;
  state_.owes_checks = worker.owes_checks;
  state_.last_loss = result_.last_loss;
  state_.seconds = seconds();
  // A run that goes on from here is at its end when it has seen so itself: with what its end does.
  const double limit = config_.training.max_minutes.value_or(INFINITY) * 60;
  if (!worker.finished && !time_is_up_ && seconds_before_ < limit)
    state_.seconds = std::min(state_.seconds, limit * (1 - 1e-9));
  state_.divisions = divisions();
  const bool best = worker.best || !stage_->validation();
  writer_.save(worker.replica, [this, state = state_, best](Checkpoint checkpoint) {
    checkpoint.state = state;
    checkpoint.state.finished = false;  // until the model is written: see write_model
    if (fault_ && fault_->kind == FaultKind::disk && fault_->strikes(0, state.step)) {
      throw Error(ErrorKind::io, fmt::format("`{}` cannot be written: no space left on device, on "
                                             "purpose",
                                             folder_.path().string()));
    }
    folder_must_be_there();
    folder_.save(checkpoint, best, config_.training.keep_checkpoints);
    if (hooks_.on_checkpoint)
      hooks_.on_checkpoint((folder_.path() / fmt::format("step-{}", state.step)).string());
  });
}

// A run's folder that goes on with the step that failed: as steps that are left out change nothing,
// and a part that was left out too often takes none any more (VerdictRule::most_bad), its weights
// are those the step had, however much later the host hears of it.
void TrainRun::write_dump(Worker& worker, int64_t step) {
  try {
    const std::filesystem::path folder = folder_.path() / fmt::format("bad-step-{}", step);
    folder_must_be_there();
    writer_.wait();
    writer_.save(worker.replica, [&](Checkpoint checkpoint) {
      checkpoint.state = state_;
      checkpoint.state.step = step - 1;
      checkpoint.state.next_batch = (step - 1) * plan_.accumulation;
      checkpoint.state.finished = checkpoint.state.owes_checks = false;
      RunFolder(folder).save(checkpoint, false, 1);
      for (const char* words : {"fingerprint", "corpus"})
        write_file_atomically(folder / words, read_file(folder_.path() / words));
    });
    writer_.wait();
    std::vector<std::string> clips;
    for (int64_t i = 0; i < plan_.accumulation; ++i)
      for (const std::string& clip : stage_->clips_of((step - 1) * plan_.accumulation + i))
        clips.push_back(clip);
    if (!clips.empty()) write_file_atomically(folder / "clips.txt", join(clips, "\n") + "\n");
    log_warning(
        "`{}` begins at step {}{}: the same command{} with{} --checkpoint-dir {}{}{}",
        folder.string(), step, clips.empty() ? "" : ", and lists its clips in clips.txt",
        options_.asked_fresh ? ", without --fresh," : "", options_.alone_with,
        shell_word(folder.string()),
        config_.training.fp8_products ? " training.fp8_products=false" : "",
        config_.training.enable_eager_debug
            ? " takes it again"
            : " training.enable_eager_debug=true names the first tensor that is not a number");
  } catch (const std::exception& error) {
    log_warning("the state of the failing step could not be written: {}", error.what());
  }
}

}  // namespace tandem
