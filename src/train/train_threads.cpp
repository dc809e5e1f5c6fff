// The threads of a run: one a replica, and what happens where one fails or never comes back.
#include <fmt/format.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "device/logical_device.h"
#include "tandem/error.h"
#include "train/train_run.h"
#include "util/clock.h"
#include "util/log.h"

namespace tandem {
namespace {

bool is_numeric(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::numeric;
  } catch (...) {
    return false;
  }
}

}  // namespace

void TrainRun::run_threads() {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < replica_count(); ++rank) {
    threads.emplace_back([this, rank] {
      const auto at_rank = static_cast<size_t>(rank);
      std::exception_ptr failure;
      try {
        work(rank);
      } catch (...) {
        failure = std::current_exception();
      }
      // Numbers that are none all ranks see themselves. Else the others need not wait: not for
      // the timeout of a collective, nor for batches that our full queue holds up.
      const bool alone_failed = failure && !is_numeric(failure);
      {
        const std::lock_guard lock(alone_mutex_);
        failures_[at_rank] = failure;
        if (failure && !failed_) failed_ = Clock::now();
        alone_failed_ = alone_failed_ || (failure && rank == 0);
        rank_failed_ = rank_failed_ || alone_failed;
        if (alone_failed && validation_feed_) validation_feed_->stop();
        alone_changed_.notify_all();
      }
      if (alone_failed) {
        if (!groups_.empty()) groups_[at_rank].reset();
        feed_->stop();
      }
      const std::lock_guard lock(alone_mutex_);
      ++ended_;
      alone_changed_.notify_all();
    });
  }
  wait_for_threads(threads);
  for (std::thread& thread : threads) thread.join();
}

// Behind a failure the others end by themselves, at the latest when a collective of theirs has run
// out of time. One that does not is in a call that never comes back, and nobody waits for it.
void TrainRun::wait_for_threads(std::vector<std::thread>& threads) {
  const std::chrono::duration<double> patience(config_.training.collective_timeout + 1);
  std::unique_lock lock(alone_mutex_);
  const auto all_ended = [&] { return ended_ == threads.size(); };
  while (!all_ended()) {
    if (!failed_) {
      if (!alone_changed_.wait_for(lock, std::chrono::seconds(1), all_ended)) tell_stalls();
      continue;
    }
    const auto until = *failed_ + std::chrono::duration_cast<Clock::duration>(patience);
    if (alone_changed_.wait_until(lock, until, all_ended)) break;
    left_behind_ = true;
    for (std::thread& thread : threads) thread.detach();
    log_warning("{} of {} ranks did not come back within {:.0f} s of that; they are left behind",
                threads.size() - ended_, threads.size(), patience.count());
    lock.unlock();
    throw_root_cause();
  }
}

// A disk or a data device that stands still is waited for: it may come back. It is told once each
// time.
void TrainRun::tell_stalls() {
  const double limit = config_.training.collective_timeout;
  bool stalls = false;
  for (size_t rank = 0; rank < waits_since_.size(); ++rank) {
    const double since = waits_since_[rank];
    if (since == 0 || seconds_since(started_) - since < limit) continue;
    stalls = true;
    if (stall_told_) break;
    const FeedCounters counters = feed_->counters(static_cast<int>(rank));
    log_warning(
        "{} has waited for a batch for {:.0f} s; {} batches were read so far and {} prepared. Is "
        "`{}` still reachable? It goes on waiting; Ctrl-C twice ends the run",
        replica(static_cast<int>(rank)).device().name(), limit, counters.loaded.items,
        counters.prepared.items, config_.data.train_data.value_or(""));
    break;
  }
  stall_told_ = stalls;
}

// Where the run failed, its feed may hang as a rank may.
void TrainRun::drop_feeds() {
  const auto drop = [this] {
    feed_.reset();
    validation_feed_.reset();
  };
  if (!failed_) return drop();
  const auto dropped = std::make_shared<std::promise<void>>();
  std::thread dropping([drop, dropped] {
    drop();
    dropped->set_value();
  });
  const std::chrono::duration<double> patience(config_.training.collective_timeout + 1);
  if (dropped->get_future().wait_for(patience) == std::future_status::ready) return dropping.join();
  left_behind_ = true;
  dropping.detach();
  log_warning("the preparation of batches did not come back within {:.0f} s; it is left behind",
              patience.count());
  throw_root_cause();
}

// The rank that failed on its own account, not one that only lost it.
void TrainRun::throw_root_cause() const {
  std::vector<std::exception_ptr> failures;
  {
    const std::lock_guard lock(alone_mutex_);
    failures = failures_;
  }
  std::exception_ptr peer;
  for (const std::exception_ptr& failure : failures) {
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
