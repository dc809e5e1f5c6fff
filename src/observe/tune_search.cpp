#include "observe/tune_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace tandem {
namespace {

// One search: what was measured, and between which sizes the largest lies.
class BatchWalk {
 public:
  BatchWalk(const BatchSearch& search, const MeasureBatch& measure, const Enough& enough,
            const SecondsLeft& left)
      : search_(search), measure_(measure), enough_(enough), left_(left), high_(search.most + 1) {}

  BatchChoice run() {
    int64_t next = std::clamp<int64_t>(search_.first, 1, search_.most);
    while (next > low_ && next < high_ && may_try(next)) {
      visit(next);
      next = low_ == 0                     ? next_by_memory()
             : search_.climbs || !limited_ ? next_by_speed()
                                           : next_by_memory();
    }
    if (search_.speed_counts && limited_ && !search_.climbs) look_at_smaller();
    return choice();
  }

 private:
  bool may_try(int64_t batch) const {
    if (probes_ >= search_.most_probes || enough_()) return false;
    return !left_ || tried_.empty() || cost_of(batch) <= left_();
  }

  // Seconds it will take: along the line through the last two; with one, a quarter of which is
  // taken to be its start.
  double cost_of(int64_t batch) const {
    const auto last = std::prev(tried_.end());
    if (batch <= last->first) return last->second.seconds;
    if (last == tried_.begin())
      return 0.75 * last->second.seconds * static_cast<double>(batch) /
             static_cast<double>(last->first);
    const auto before = std::prev(last);
    const double slope = (last->second.seconds - before->second.seconds) /
                         static_cast<double>(last->first - before->first);
    return last->second.seconds + std::max(0.0, slope) * static_cast<double>(batch - last->first);
  }

  double doubt(const TuneReading& one, const TuneReading& other) const {
    return in_doubt(one, other, search_.tolerance);
  }

  double room(const TuneReading& reading) const { return search_.used_share * reading.limit_bytes; }

  void visit(int64_t batch) {
    const TuneReading reading = measure_(batch);
    ++probes_;
    tried_[batch] = reading;
    if (reading.fits() && reading.limit_bytes > 0) limited_ = true;
    const bool roomy =
        reading.fits() && (reading.limit_bytes <= 0 || reading.peak_bytes <= room(reading));
    if (roomy)
      low_ = std::max(low_, batch);
    else
      high_ = std::min(high_, batch);
  }

  // The largest batch by the line through the two largest that ran; with one, through it and the
  // byte model's fixed part. 0: no line.
  int64_t by_line() const {
    std::vector<std::pair<double, double>> points;  // batch, bytes
    double limit = 0;
    for (const auto& [batch, reading] : tried_) {
      if (!reading.fits() || reading.peak_bytes <= 0) continue;
      points.emplace_back(static_cast<double>(batch), reading.peak_bytes);
      limit = room(reading);
    }
    if (points.empty() || limit <= 0) return 0;
    const auto [last, last_bytes] = points.back();
    double slope = search_.bytes_a_clip;
    if (points.size() > 1) {
      const auto [before, before_bytes] = points[points.size() - 2];
      slope = (last_bytes - before_bytes) / (last - before);
    } else if (slope <= 0) {
      slope = (last_bytes - search_.fixed_bytes) / last;
    }
    if (slope <= 0) return 0;
    const double largest = last + (limit - last_bytes) / slope;
    return largest < 1 ? 1 : static_cast<int64_t>(std::min(largest, 1e9));
  }

  // 0: there is nothing left to learn.
  int64_t next_by_memory() const {
    if (high_ - low_ <= std::max<int64_t>(1, low_ / 16)) return 0;
    const int64_t predicted = by_line();
    if (predicted > low_ && predicted < high_) return predicted;
    if (predicted > 0 && predicted <= low_ && tried_.size() > 1) return 0;
    if (high_ > search_.most) return std::min(search_.most, std::max<int64_t>(1, 2 * low_));
    return std::midpoint(low_, high_);
  }

  // Twice as many, as long as it brings something and the line of memory lets it.
  int64_t next_by_speed() const {
    const auto last = tried_.find(low_);
    if (last != tried_.begin()) {
      const TuneReading& before = std::prev(last)->second;
      const double least = before.speed * (1 + doubt(last->second, before));
      if (before.fits() && last->second.speed <= least) return 0;
    }
    int64_t next = std::min(2 * low_, search_.most);
    if (const int64_t predicted = by_line(); predicted > 0) next = std::min(next, predicted);
    // What did not fit is not tried again, nor what is hardly less.
    if (next >= high_) next = std::midpoint(low_, high_);
    return next - low_ > low_ / 16 ? next : 0;
  }

  // Whether halves of the largest are as fast, or faster.
  void look_at_smaller() {
    for (int64_t batch = low_; batch >= 2; batch /= 2) {
      if (!tried_.contains(batch / 2)) {
        if (!may_try(batch / 2)) return;
        visit(batch / 2);
      }
      const TuneReading &half = tried_[batch / 2], &whole = tried_[batch];
      if (!half.fits() || half.speed * (1 + doubt(half, whole)) < whole.speed) return;
    }
  }

  // Whether more than what fits was seen not to, or would not by the line.
  bool at_the_limit() const {
    for (const auto& [batch, reading] : tried_)
      if (batch > low_ && (reading.fits() || reading.outcome == ProbeOutcome::out_of_memory))
        return true;
    const int64_t predicted = by_line();
    return predicted > 0 && predicted - low_ <= low_ / 16;
  }

  BatchChoice choice() const {
    BatchChoice out{.limited = at_the_limit(), .probes = probes_};
    const TuneReading* best = nullptr;
    // One clip that leaves less than the share free is still better than none.
    const int64_t most = std::max<int64_t>(1, low_);
    for (const auto& [batch, reading] : tried_) {
      if (batch > most || !reading.fits()) continue;
      if (!best || reading.speed > best->speed) best = &reading;
      out.largest = batch;
    }
    for (const auto& [batch, reading] : tried_) {
      if (batch > most || !reading.fits()) continue;
      const bool fast = reading.speed * (1 + doubt(reading, *best)) >= best->speed;
      if (search_.speed_counts ? !fast : batch != out.largest) continue;
      out.batch = batch;
      out.reading = reading;
      break;
    }
    return out;
  }

  const BatchSearch& search_;
  const MeasureBatch& measure_;
  const Enough& enough_;
  const SecondsLeft& left_;
  std::map<int64_t, TuneReading> tried_;
  int64_t low_ = 0;  // the largest that fits with room to spare
  int64_t high_;     // the smallest that does not
  bool limited_ = false;
  int probes_ = 0;
};

}  // namespace

const char* to_string(ProbeOutcome outcome) {
  switch (outcome) {
    case ProbeOutcome::fits: return "fits";
    case ProbeOutcome::out_of_memory: return "out of memory";
    case ProbeOutcome::too_slow: return "too slow";
    case ProbeOutcome::failed: return "failed";
    case ProbeOutcome::not_tried: return "not measured";
  }
  return "failed";
}

double in_doubt(const TuneReading& one, const TuneReading& other, double most) {
  constexpr double least = 0.01;
  if (one.steps < 2 || other.steps < 2) return most;
  const auto error = [](const TuneReading& reading) {
    return reading.deviation / std::sqrt(static_cast<double>(reading.steps));
  };
  return std::clamp(std::hypot(error(one), error(other)), std::min(least, most), most);
}

BatchChoice search_batch(const BatchSearch& search, const MeasureBatch& measure,
                         const Enough& enough, const SecondsLeft& left) {
  return BatchWalk(search, measure, enough, left).run();
}

std::pair<int64_t, TuneReading> search_depth(const DepthSearch& search, const TuneReading& now,
                                             const std::function<TuneReading(int64_t)>& measure,
                                             const Enough& enough) {
  std::pair<int64_t, TuneReading> best{search.current, now};
  const bool waits = now.wait_share > search.wait_allowed;
  for (int probe = 0; probe < search.most_probes && !enough(); ++probe) {
    const int64_t next =
        waits ? std::min(search.most, best.first * 2) : std::max(search.least, best.first / 2);
    if (next == best.first) break;
    const TuneReading reading = measure(next);
    if (!reading.fits()) break;
    if (waits) {
      const double doubt = in_doubt(reading, best.second, search.tolerance);
      if (reading.speed <= best.second.speed * (1 + doubt)) break;
    } else if (reading.wait_share > search.wait_allowed ||
               reading.speed * (1 + in_doubt(reading, now, search.tolerance)) < now.speed) {
      break;
    }
    best = {next, reading};
  }
  return best;
}

}  // namespace tandem
