// The part of a run that each replica's thread does.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/timed_step.h"
#include "tandem/error.h"
#include "train/nan_watch.h"
#include "train/train_worker.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {

void TrainRun::work(int rank) {
  DeviceScope scope(replica(rank).device());
  Worker worker(*this, rank);
  const auto& training = config_.training;
  int64_t step = state_.step + 1;
  const bool owes_checks = state_.owes_checks, was_last = is_at_its_end();
  try {
    if (training.check_replicas > 0) check_replicas(rank, step - 1);
    bool goes_on = true;
    if (owes_checks) {
      if (group(rank)) group(rank)->barrier();  // until all have read the state
      goes_on = check(worker, step - 1, was_last, /*saves=*/true);
    }
    for (; goes_on && step <= total_steps_; ++step) {
      if (!take_step(worker, step)) return;
      if (due(training.check_replicas, step)) check_replicas(rank, step);
      const bool last = step == total_steps_ || (step >= stop_after_ && time_is_up_);
      goes_on = check(worker, step, last, /*saves=*/false);
    }
    worker.reader.drain();
  } catch (const Error& error) {
    if (rank == 0 && error.kind() == ErrorKind::numeric)
      write_dump(worker, worker.guard.ended() ? worker.guard.last_bad() : step);
    throw;
  }
}

// By rank 0, before it joins the step's collectives.
void TrainRun::decide_stop(int64_t step) {
  if (stop_after_ <= step) return;
  const auto& limit = config_.training.max_minutes;
  const bool up = limit && seconds() >= *limit * 60;
  if (up) time_is_up_ = true;
  if (up || stop_requested() != StopRequest::none) stop_after_ = step;
}

// False when the rank is to vanish.
bool TrainRun::take_step(Worker& worker, int64_t step) {
  const int rank = worker.rank;
  const bool struck = fault_ && fault_->strikes(rank, step);
  const auto is = [&](FaultKind kind) { return struck && fault_->kind == kind; };
  if (is(FaultKind::vanish)) return false;
  if (is(FaultKind::throw_error)) {
    throw Error(ErrorKind::internal,
                fmt::format("fault on purpose at rank {}, step {}", rank, step));
  }
  if (is(FaultKind::slow)) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  if (is(FaultKind::hang)) hang();
  Stream& stream = worker.replica.device().compute_stream();
  TimedStep timed{.began = stream.record_time(), .ended = {}, .waits = {}};
  StepRequest request{.step = step,
                      .learning_rate = learning_rate_at(schedule_, step, total_steps_),
                      .poison = is(FaultKind::nan),
                      .out_of_memory = is(FaultKind::oom)};
  request.batch = [&](int64_t) {
    worker.batch.reset();
    const Event asked = stream.record_time();
    std::atomic<double>& since = waits_since_[static_cast<size_t>(rank)];
    since = seconds_since(started_);
    std::optional<BatchLease> batch = feed_->next(rank);
    since = 0;
    timed.waits.emplace_back(asked, stream.record_time());
    if (!batch && rank_failed_) throw Error(ErrorKind::peer, "another rank failed");
    if (!batch) throw Error(ErrorKind::internal, "the feed ended before the run did");
    if (rank == 0) decide_stop(step);
    worker.batch.emplace(std::move(*batch));
    return &**worker.batch;
  };
  std::optional<NanWatch> watch;
  if (config_.training.enable_eager_debug) watch.emplace(worker.replica.learner().phases(), step);
  const at::Tensor values = worker.replica.step(request);
  if (is(FaultKind::flip)) worker.replica.damage();
  if (watch) check_numbers(worker, step, watch->found());
  watch.reset();
  timed.ended = stream.record_time();
  worker.reader.push(values, [this, &worker, step, timed](const std::vector<double>& v) {
    note_step(worker, step, v, std::max(1e-9, timed.seconds()), timed.waited());
  });
  if (rank == 0 && memory_ && due(config_.observe.memory_step, step)) memory_->report(step);
  return true;
}

// What one rank's pass made, the others meet in their sums: the first find is the one that tells. A
// step that a rank gave up for want of memory is not a number on purpose.
void TrainRun::check_numbers(Worker& worker, int64_t step,
                             const std::optional<NanWatch::Found>& found) {
  {
    const std::lock_guard lock(nan_mutex_);
    if (nan_step_ != step) nan_left_out_ = false, first_nan_.reset();
    nan_step_ = step;
    nan_left_out_ = nan_left_out_ || worker.replica.gave_up();
    if (found && (!first_nan_ || found->when < first_nan_->when)) first_nan_ = found;
  }
  if (group(worker.rank)) group(worker.rank)->barrier();
  std::optional<NanWatch::Found> first;
  {
    const std::lock_guard lock(nan_mutex_);
    if (!nan_left_out_) first = first_nan_;
  }
  if (group(worker.rank)) group(worker.rank)->barrier();  // before anybody looks at the next step
  if (first) throw NanWatch::error(*first);
}

void TrainRun::note_step(Worker& worker, int64_t step, const std::vector<double>& values,
                         double seconds, double waited) {
  const size_t terms = worker.terms.size();
  // The step counts as taken when all its phases were; the norm is of the one that was not, or of
  // the last.
  bool good = true;
  double norm = 0;
  for (size_t i = terms; good && i + 1 < values.size(); i += 2) {
    norm = values[i];
    good = values[i + 1] != 0;
  }
  const double loss = values[0];
  // Every rank hears the same numbers and decides the same; rank 0 speaks of it.
  std::exception_ptr too_many;
  try {
    worker.guard.arrived(step, loss, norm, good);
  } catch (...) {
    too_many = std::current_exception();
  }
  if (worker.rank == 0) {
    const std::string why = good ? "" : worker.guard.remark();
    if (!good) {
      ++state_.skipped;
      log_warning("{}", why);
    }
    if (const std::vector<int64_t> now = divisions(); now != told_divisions_ && hooks_.on_event) {
      std::vector<std::string> parts;
      for (size_t rank = 0; rank < now.size(); ++rank)
        parts.push_back(
            fmt::format("{} in {}", replica(static_cast<int>(rank)).device().name(), now[rank]));
      hooks_.on_event(
          step, "memory",
          fmt::format("parts a batch is worked on in, for want of memory: {}", join(parts, ", ")));
      told_divisions_ = now;
    }
    if (step == result_.first_step + 1) result_.first_loss = loss;
    result_.last_step = step;
    if (good) result_.last_loss = loss;
    if (hooks_.on_step) {
      StepReport report{
          .step = step,
          .total_steps = total_steps_,
          .loss = loss,
          .gradient_norm = norm,
          .learning_rate = learning_rate_at(schedule_, step, total_steps_),
          .tokens_per_second =
              stage_->tokens_a_batch() * static_cast<double>(plan_.accumulation) / seconds,
          .wait_share = std::min(1.0, waited / seconds),
          .audio_seconds_per_second =
              stage_->seconds_a_batch() * static_cast<double>(plan_.accumulation) / seconds,
          .skipped = why,
          .memory_used = worker.replica.device().memory().used(),
          .captures = worker.replica.captures(),
          .unsettled = worker.replica.unsettled()};
      for (size_t i = 1; i < terms; ++i) report.terms.emplace_back(worker.terms[i], values[i]);
      hooks_.on_step(report);
    }
  }
  if (too_many) std::rethrow_exception(too_many);
}

}  // namespace tandem
