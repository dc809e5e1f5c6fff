#include "device/meeting.h"

#include <fmt/format.h>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

std::string Meeting::describe_missing(const Slot& slot) const {
  std::vector<std::string> missing, arrived;
  for (int rank = 0; rank < size_; ++rank) {
    (slot.arrived.count(rank) ? arrived : missing).push_back(std::to_string(rank));
  }
  return fmt::format("rank {} of {} did not arrive (arrived: {})", join(missing, ", "), size_,
                     join(arrived, ", "));
}

void Meeting::fail(const std::string& sentence) {
  if (!failure_) failure_ = sentence;
  changed_.notify_all();
}

void Meeting::throw_failure() const {
  throw Error(ErrorKind::peer, *failure_)
      .hint("look at what that rank printed last; rerun to resume");
}

void Meeting::leave(int rank) {
  std::lock_guard lock(mutex_);
  left_[static_cast<size_t>(rank)] = true;
  changed_.notify_all();
}

void Meeting::report_failure(int rank, const std::string& why) {
  std::lock_guard lock(mutex_);
  if (!failure_) fail(fmt::format("rank {} of {} failed in a collective: {}", rank, size_, why));
}

std::vector<Contribution> Meeting::exchange(uint64_t collective, int round, int rank,
                                            const std::string& what, Contribution contribution) {
  std::unique_lock lock(mutex_);
  if (failure_) throw_failure();
  const auto key = std::make_pair(collective, round);
  Slot& slot = slots_[key];
  slot.arrived[rank] = std::move(contribution);
  slot.what[rank] = what;
  for (const auto& [other, theirs] : slot.what) {
    if (theirs == what) continue;
    fail(fmt::format("the ranks disagree about collective {}: rank {} brings {}, rank {} brings {}",
                     collective, other, theirs, rank, what));
    throw_failure();
  }
  changed_.notify_all();

  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  const auto complete = [&] { return static_cast<int>(slot.arrived.size()) == size_; };
  const auto someone_left = [&] {
    for (int other = 0; other < size_; ++other) {
      if (left_[static_cast<size_t>(other)] && !slot.arrived.count(other)) return true;
    }
    return false;
  };
  while (!complete() && !failure_) {
    if (someone_left()) {
      fail(fmt::format("{} {} failed: {}; it left the group", what, collective,
                       describe_missing(slot)));
    } else if (changed_.wait_until(lock, deadline) == std::cv_status::timeout && !complete() &&
               !failure_) {
      fail(fmt::format("{} {} timed out after {}: {}", what, collective,
                       format_seconds(std::chrono::duration<double>(timeout_).count()),
                       describe_missing(slot)));
    }
  }
  if (failure_) throw_failure();

  std::vector<Contribution> all;
  for (const auto& [other, theirs] : slot.arrived) all.push_back(theirs);
  if (++slot.taken == size_) slots_.erase(key);
  return all;
}

}  // namespace tandem
