#include "observe/diagnose/step_series.h"

#include <deque>
#include <exception>
#include <thread>
#include <utility>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/timed_step.h"
#include "observe/diagnose/series.h"
#include "tandem/error.h"
#include "util/signals.h"

namespace tandem {

namespace {

// What was made for the measurement is cleaned up on the way out.
void throw_if_stopped() {
  const StopRequest request = stop_requested();
  if (request == StopRequest::none) return;
  throw Error(request == StopRequest::terminated ? ErrorKind::terminated : ErrorKind::interrupted,
              "stopped before everything was measured");
}

}  // namespace

std::vector<double> StepSeries::of_settled(const std::vector<double>& values) const {
  std::vector<double> found;
  for (size_t i = 0; i < values.size(); ++i)
    if (settled[i]) found.push_back(values[i]);
  return found.size() >= 5 ? found : values;
}

namespace {

void settle(Subject& subject, const SeriesRequest& request, StepSeries& series) {
  constexpr int64_t quiet_enough = 12;
  int64_t quiet = 0, steps = 0, settled = 0;
  const bool alone = subject.models().size() == 1;
  while (steps < request.settling && (quiet < quiet_enough || !alone)) {
    throw_if_stopped();
    const int64_t before = subject.unsettled(request.rank);
    subject.step(request.rank, request.next);
    const bool replayed = subject.unsettled(request.rank) == before;
    quiet = replayed ? quiet + 1 : 0;
    settled += replayed;
    ++steps;
  }
  if (steps > 0) series.settled_before = static_cast<double>(settled) / static_cast<double>(steps);
}

}  // namespace

StepSeries run_steps(Subject& subject, const SeriesRequest& request) {
  constexpr size_t ahead = 2;
  LogicalDevice& device = *subject.models()[static_cast<size_t>(request.rank)];
  DeviceScope scope(device);
  const bool queues = subject.queues_work();
  const auto warm_up = static_cast<int64_t>(warm_up_of(static_cast<size_t>(request.steps)));
  StepSeries series;
  settle(subject, request, series);
  Stream& stream = device.compute_stream();
  std::deque<TimedStep> pending;  // of work that is queued
  const auto finish_first = [&] {
    series.seconds.push_back(pending.front().seconds());
    series.waits.push_back(pending.front().waited());
    pending.pop_front();
  };
  int64_t unsettled = subject.unsettled(request.rank);
  auto last = Clock::now();
  Event before = stream.record_time();
  for (int64_t i = 0; i < request.steps; ++i) {
    throw_if_stopped();
    if (i == warm_up && request.warm) request.warm();
    SpentTime waiting;
    const SpentTime at_start = thread_time();
    TimedStep step{.began = before, .ended = {}, .waits = {}};
    subject.step(request.rank, [&] {
      const SpentTime asked = thread_time();
      const Event asked_there = stream.record_time();
      const Batch* batch = request.next();
      waiting += thread_time() - asked;
      step.waits.emplace_back(asked_there, stream.record_time());
      if (!batch) throw Error(ErrorKind::internal, "the feed ended before the measurement did");
      return batch;
    });
    // Standing in line for a core is not waiting for data, wherever it happens.
    waiting.wall -= waiting.in_line;
    SpentTime spent = thread_time() - at_start;
    spent.wall -= waiting.wall;
    spent.on_core -= waiting.on_core;
    if (i >= warm_up) {
      series.launch += spent;
      ++series.counted;
    }
    if (queues) {
      before = step.ended = stream.record_time();
      pending.push_back(std::move(step));
      if (pending.size() > ahead) finish_first();
    } else {
      series.seconds.push_back(seconds_since(last));
      last = Clock::now();
      series.waits.push_back(waiting.wall);
    }
    const int64_t before_it = std::exchange(unsettled, subject.unsettled(request.rank));
    series.settled.push_back(before_it == unsettled);
  }
  while (!pending.empty()) finish_first();
  return series;
}

std::vector<StepSeries> on_all_ranks(Subject& subject,
                                     const std::function<SeriesRequest(int)>& request) {
  const size_t ranks = subject.models().size();
  std::vector<StepSeries> all(ranks);
  std::vector<std::exception_ptr> failures(ranks);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        all[rank] = run_steps(subject, request(static_cast<int>(rank)));
      } catch (...) {
        failures[rank] = std::current_exception();
        subject.gave_up(static_cast<int>(rank));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return all;
}

}  // namespace tandem
