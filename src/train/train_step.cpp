// The part of a run that each replica's thread does.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <thread>

#include "data/order/batch_order.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "tandem/error.h"
#include "train/train_run.h"
#include "util/clock.h"

namespace tandem {

void TrainRun::work(int rank) {
  Replica& replica = *replicas_[static_cast<size_t>(rank)];
  DeviceScope scope(replica.device());
  LossReader reader(replica.device());
  const auto& training = config_.training;
  for (int64_t step = state_.step + 1, first = step; step <= total_steps_; ++step) {
    const auto start = Clock::now();
    if (step == first && training.check_replicas > 0) check_replicas(rank, step - 1);
    const bool struck = fault_ && fault_->strikes(rank, step);
    if (struck && fault_->kind == FaultKind::vanish) return;
    if (struck && fault_->kind == FaultKind::throw_error) {
      throw Error(ErrorKind::internal,
                  fmt::format("fault on purpose at rank {}, step {}", rank, step));
    }
    if (struck && fault_->kind == FaultKind::slow)
      std::this_thread::sleep_for(std::chrono::milliseconds(200));

    double waited = 0;
    at::Tensor loss = accumulate(rank, waited);
    if (struck && fault_->kind == FaultKind::nan)
      loss = loss * std::numeric_limits<double>::quiet_NaN();
    if (rank == 0 && stop_requested() != StopRequest::none) stop_after_ = step;
    const at::Tensor norm = replica.update(group(rank), plan_.accumulation);
    if (group(rank)) group(rank)->all_reduce(loss, Reduce::sum)->wait();
    const bool stopping = step >= stop_after_.load();
    if (rank == 0) {
      reader.push(loss, norm,
                  [this, step, waited, seconds = seconds_since(start)](double value, double size) {
                    report_step(step, value, size, seconds, waited);
                  });
      if (memory_ && due(config_.observe.memory_step, step)) memory_->report(step);
    }
    if (due(training.val_step, step) || step == total_steps_) validate(rank, step);
    if (due(training.check_replicas, step)) check_replicas(rank, step);
    const bool saving = due(training.save_step, step) || step == total_steps_ || stopping;
    if (rank == 0 && saving) save(step, reader);
    if (stopping) break;
  }
  reader.drain();
}

at::Tensor TrainRun::accumulate(int rank, double& waited) {
  at::Tensor loss;
  for (int64_t i = 0; i < plan_.accumulation; ++i) {
    const auto asked = Clock::now();
    const std::optional<BatchLease> batch = feed_->next(rank);
    waited += seconds_since(asked);
    if (!batch) throw Error(ErrorKind::internal, "the feed ended before the run did");
    const at::Tensor part = replicas_[static_cast<size_t>(rank)]->add_gradients(**batch);
    loss = loss.defined() ? loss + part : part;
  }
  return plan_.accumulation > 1 ? loss / static_cast<double>(plan_.accumulation) : loss;
}

void TrainRun::report_step(int64_t step, double loss, double norm, double seconds, double waited) {
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    throw Error(ErrorKind::numeric,
                fmt::format("the {} is not finite at step {}",
                            std::isfinite(loss) ? "gradient norm" : "loss", step))
        .hint("the last checkpoint is good; try a lower --learning-rate");
  }
  if (step == result_.first_step + 1) result_.first_loss = loss;
  result_.last_step = step;
  result_.last_loss = loss;
  if (!hooks_.on_step) return;
  hooks_.on_step({.step = step,
                  .total_steps = total_steps_,
                  .loss = loss,
                  .gradient_norm = norm,
                  .learning_rate = config_.training.learning_rate,
                  .tokens_per_second = static_cast<double>(plan_.tokens_a_step) / seconds,
                  .wait_share = waited / seconds});
}

// Every replica takes its part of the validation windows; the shares sum to the mean over all of
// them.
void TrainRun::validate(int rank, int64_t step) {
  const int64_t windows = std::max<int64_t>(1, corpus_->validation_windows());
  const Part part = part_of(windows, replica_count(), rank);
  Replica& replica = *replicas_[static_cast<size_t>(rank)];
  at::Tensor loss = replica.validate(*corpus_, part.first, part.count, windows);
  if (group(rank)) group(rank)->all_reduce(loss, Reduce::sum)->wait();
  if (rank != 0) return;
  const double value = loss.to(at::kCPU, at::kDouble).const_data_ptr<double>()[0];
  best_at_last_validation_ = !state_.best_loss || value < *state_.best_loss;
  if (best_at_last_validation_) state_.best_loss = value;
  result_.validation_loss = value;
  if (hooks_.on_step) {
    hooks_.on_step({.step = step, .total_steps = total_steps_, .validation = true, .loss = value});
  }
}

void TrainRun::check_replicas(int rank, int64_t step) {
  if (!group(rank)) return;
  std::vector<at::Tensor> sums;
  group(rank)->gather(replicas_[static_cast<size_t>(rank)]->checksum(), sums, 0)->wait();
  if (rank != 0) return;
  for (size_t other = 1; other < sums.size(); ++other) {
    if (at::equal(sums[0], sums[other])) continue;
    throw Error(ErrorKind::peer,
                fmt::format("the weights of rank {} differ from those of rank 0 after step {}",
                            other, step))
        .hint("start again from the last checkpoint; if it happens again, suspect that device");
  }
}

void TrainRun::save(int64_t step, LossReader& reader) {
  reader.drain();
  state_.step = step;
  state_.next_batch = step * plan_.accumulation;
  state_.finished = step >= total_steps_;
  state_.last_loss = result_.last_loss;
  Replica& replica = *replicas_[0];
  folder_.save(
      {.weights = replica.weights(), .optimizer = replica.optimizer_state(), .state = state_},
      best_at_last_validation_, config_.training.keep_checkpoints);
  best_at_last_validation_ = false;
  if (hooks_.on_checkpoint)
    hooks_.on_checkpoint((folder_.path() / fmt::format("step-{}", step)).string());
}

}  // namespace tandem
