#include "generate/music_shares.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "util/clock.h"

namespace tandem {
namespace {

int64_t prompt_frames(const PreparedClip& clip) {
  return clip.request.prompt.defined() ? clip.request.prompt.size(-1) : 0;
}

int64_t sum(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

}  // namespace

std::vector<int64_t> device_batches(int64_t total, size_t devices) {
  const auto count = static_cast<int64_t>(devices);
  total = std::max(total, count);
  std::vector<int64_t> parts(devices, total / count);
  parts.back() += total % count;
  return parts;
}

std::vector<int64_t> cut_batch(int64_t count, const std::vector<int64_t>& limits) {
  if (count >= sum(limits)) return limits;
  const auto devices = std::ranges::count_if(limits, [](int64_t limit) { return limit > 0; });
  std::vector<int64_t> parts(limits.size());
  int64_t rest = count;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = std::min(count / devices, limits[i]);
    rest -= parts[i];
  }
  for (size_t i = parts.size(); i-- > 0 && rest > 0;) {
    const int64_t more = std::min(rest, limits[i] - parts[i]);
    parts[i] += more;
    rest -= more;
  }
  return parts;
}

ClipShares::ClipShares(Options options)
    : gather_(options.gather),
      ahead_(std::max<int64_t>(1, options.ahead)),
      limits_(std::move(options.limits)),
      lost_(limits_.size()),
      to_come_(options.total),
      shares_(limits_.size()) {}

int64_t ClipShares::sum_of_limits() const {
  int64_t all = 0;
  for (size_t i = 0; i < limits_.size(); ++i) all += lost_[i] ? 0 : limits_[i];
  return all;
}

bool ClipShares::put(PreparedClip clip) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return stopped_ || static_cast<int64_t>(waiting_.size()) < ahead_ * sum_of_limits();
  });
  if (stopped_) return false;
  const size_t place = clip.place;
  waiting_.emplace(place, std::move(clip));
  --to_come_;
  changed_.notify_all();
  return true;
}

void ClipShares::pass_over() {
  std::lock_guard lock(mutex_);
  --to_come_;
  changed_.notify_all();
}

// Whether there is no reason to wait: enough clips that fit together, no room for more, or no more.
bool ClipShares::window_ready(int64_t wanted) const {
  if (waiting_.empty()) return false;
  const auto size = static_cast<int64_t>(waiting_.size());
  if (to_come_ == 0 || size >= ahead_ * sum_of_limits()) return true;
  if (size < wanted) return false;
  const int64_t frames = prompt_frames(waiting_.begin()->second);
  return std::ranges::count_if(waiting_, [&](const auto& item) {
           return prompt_frames(item.second) == frames;
         }) >= wanted;
}

ClipBatch ClipShares::take_waiting(int64_t most) {
  ClipBatch batch;
  const int64_t frames = prompt_frames(waiting_.begin()->second);
  for (auto item = waiting_.begin();
       item != waiting_.end() && static_cast<int64_t>(batch.size()) < most;) {
    if (prompt_frames(item->second) != frames) {
      ++item;
      continue;
    }
    batch.push_back(std::move(item->second));
    item = waiting_.erase(item);
  }
  out_ += static_cast<int64_t>(batch.size());
  return batch;
}

// Once what is left fits one total batch, it is cut over the devices: the first to ask would
// otherwise leave others idle.
int64_t ClipShares::batch_wanted(size_t device) {
  if (left() > sum_of_limits()) {
    tail_.clear();
    return limits_[device];
  }
  if (tail_.empty()) {
    std::vector<int64_t> limits = limits_;
    for (size_t i = 0; i < limits.size(); ++i) limits[i] = lost_[i] ? 0 : limits[i];
    tail_ = cut_batch(left(), limits);
  }
  return std::clamp<int64_t>(tail_[device], 1, limits_[device]);
}

void ClipShares::cut_round() {
  std::vector<int64_t> limits;
  std::vector<size_t> devices;
  for (size_t i = 0; i < limits_.size(); ++i) {
    if (lost_[i]) continue;
    limits.push_back(limits_[i]);
    devices.push_back(i);
  }
  ClipBatch round = take_waiting(sum(limits));
  round_left_ = static_cast<int64_t>(round.size());
  const std::vector<int64_t> parts = cut_batch(round_left_, limits);
  auto next = round.begin();
  for (size_t i = 0; i < devices.size(); ++i) {
    for (int64_t k = 0; k < parts[i]; ++k) shares_[devices[i]].push_back(std::move(*next++));
  }
  changed_.notify_all();
}

std::optional<ClipBatch> ClipShares::take(size_t device) {
  std::unique_lock lock(mutex_);
  const auto start = Clock::now();
  const auto ready = [&] {
    if (!gather_) return window_ready(batch_wanted(device));
    if (shares_[device].empty() && round_left_ == 0 && window_ready(sum_of_limits())) cut_round();
    return !shares_[device].empty();
  };
  bool found = false;
  changed_.wait(lock, [&] {
    if (stopped_ || lost_[device]) return true;
    found = ready();
    return found || (left() == 0 && shares_[device].empty());
  });
  if (!found) return std::nullopt;
  waited_ += seconds_since(start);
  changed_.notify_all();
  if (!gather_) return take_waiting(batch_wanted(device));
  ClipBatch batch;
  auto& share = shares_[device];
  while (!share.empty() && static_cast<int64_t>(batch.size()) < limits_[device]) {
    batch.push_back(std::move(share.front()));
    share.pop_front();
  }
  return batch;
}

bool ClipShares::wait_for_more(size_t device) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return stopped_ || !waiting_.empty() || !shares_[device].empty() || over_locked();
  });
  return !stopped_ && !over_locked();
}

void ClipShares::generated(size_t clips) {
  std::lock_guard lock(mutex_);
  if (gather_) round_left_ -= static_cast<int64_t>(clips);
  changed_.notify_all();
}

void ClipShares::resolve(size_t clips) {
  std::lock_guard lock(mutex_);
  out_ -= static_cast<int64_t>(clips);
  changed_.notify_all();
}

void ClipShares::give_back(ClipBatch batch, bool was_generated) {
  std::lock_guard lock(mutex_);
  const auto count = static_cast<int64_t>(batch.size());
  out_ -= count;
  if (gather_ && !was_generated) round_left_ -= count;
  for (PreparedClip& clip : batch) {
    const size_t place = clip.place;
    waiting_.emplace(place, std::move(clip));
  }
  tail_.clear();
  changed_.notify_all();
}

void ClipShares::try_smaller(size_t device, ClipBatch batch, int64_t limit) {
  {
    std::lock_guard lock(mutex_);
    limits_[device] = std::max<int64_t>(1, std::min(limits_[device], limit));
    if (gather_) {
      auto& share = shares_[device];
      share.insert(share.begin(), std::make_move_iterator(batch.begin()),
                   std::make_move_iterator(batch.end()));
      batch.clear();
    }
  }
  give_back(std::move(batch), /*was_generated=*/false);
}

void ClipShares::lose(size_t device) {
  ClipBatch rest;
  {
    std::lock_guard lock(mutex_);
    lost_[device] = true;
    rest.assign(std::make_move_iterator(shares_[device].begin()),
                std::make_move_iterator(shares_[device].end()));
    shares_[device].clear();
  }
  give_back(std::move(rest), /*was_generated=*/false);
}

void ClipShares::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

int64_t ClipShares::limit(size_t device) const {
  std::lock_guard lock(mutex_);
  return limits_[device];
}

size_t ClipShares::devices_left() const {
  std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count(lost_, false));
}

bool ClipShares::over() const {
  std::lock_guard lock(mutex_);
  return over_locked();
}

double ClipShares::waited_seconds() const {
  std::lock_guard lock(mutex_);
  return waited_;
}

}  // namespace tandem
