#include "generate/stop_control.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

constexpr double usual_codes_a_character = 1.6;
constexpr int64_t most_codes_a_character = 4, codes_of_slack = 48;
constexpr int64_t longest_period = 24, least_repeated = 16;
constexpr double window_seconds = 0.02;
constexpr double most_pause = 1.2, pause_left = 0.6;
constexpr double most_tail = 3, tail_left = 0.08;  // a tail is cut off: it troubles only as a sign
constexpr double silence_share = 1.6e-5;           // of the loudest window's power: -48 dB
constexpr double silence_power = 1e-8;             // -80 dB of full scale

}  // namespace

int64_t code_bound(int64_t characters, int64_t model_limit) {
  return std::min(model_limit, codes_of_slack + most_codes_a_character * characters);
}

int64_t code_least(int64_t characters) { return characters < 12 ? 1 : characters / 3; }

std::optional<Repetition> find_repetition(std::span<const int64_t> codes) {
  std::optional<Repetition> found;
  const auto count = static_cast<int64_t>(codes.size());
  for (int64_t period = 1; period <= longest_period; ++period) {
    int64_t equal = 0;
    for (int64_t i = period; i <= count; ++i) {
      const auto at = static_cast<size_t>(i), before = static_cast<size_t>(i - period);
      if (i < count && codes[at] == codes[before]) {
        ++equal;
        continue;
      }
      // Equal to the turn before it: two turns of these make three in all.
      if (equal >= std::max(least_repeated, 2 * period) &&
          (!found || equal + period > found->codes)) {
        found = Repetition{.first = i - equal - period, .codes = equal + period, .period = period};
      }
      equal = 0;
    }
  }
  return found;
}

SilenceCutter::SilenceCutter(int sample_rate, Sink sink)
    : rate_(sample_rate),
      sink_(std::move(sink)),
      window_(static_cast<size_t>(std::max<int64_t>(1, samples_of(window_seconds)))) {}

int64_t SilenceCutter::samples_of(double seconds) const {
  return static_cast<int64_t>(std::llround(seconds * rate_));
}

void SilenceCutter::push(std::span<const float> samples) {
  held_.insert(held_.end(), samples.begin(), samples.end());
  while (held_.size() - first_ - silent_ >= window_) {
    if (next_is_silent()) {
      silent_ += window_;
      continue;
    }
    give_pause();
    give(first_, window_);
    first_ += window_;
  }
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(first_));
  first_ = 0;
  if (!ready_.empty()) sink_(ready_);
  ready_.clear();
}

bool SilenceCutter::next_is_silent() {
  double power = 0;
  const size_t begin = first_ + silent_;
  for (size_t i = begin; i < begin + window_; ++i) power += double{held_[i]} * held_[i];
  power /= static_cast<double>(window_);
  loudest_ = std::max(loudest_, power);
  return power < std::max(silence_power, silence_share * loudest_);
}

// Of a long pause both ends are kept: speech fades into the first and out of the last.
void SilenceCutter::give_pause() {
  longest_ = std::max(longest_, static_cast<int64_t>(silent_));
  if (static_cast<int64_t>(silent_) <= samples_of(most_pause)) {
    give(first_, silent_);
  } else {
    const auto end = static_cast<size_t>(samples_of(pause_left / 2));
    give(first_, end);
    give(first_ + silent_ - end, end);
    cut_ += static_cast<int64_t>(silent_ - 2 * end);
  }
  first_ += silent_;
  silent_ = 0;
}

void SilenceCutter::give(size_t first, size_t count) {
  const auto begin = held_.begin() + static_cast<std::ptrdiff_t>(first);
  ready_.insert(ready_.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
}

void SilenceCutter::finish() {
  const bool all_silent = loudest_ < silence_power;  // nothing was said: nothing to compare with
  const size_t rest = held_.size();                  // less than a window is not judged
  const size_t left = std::min(rest, static_cast<size_t>(samples_of(tail_left)));
  const size_t kept = silent_ == 0 || all_silent ? rest : left;
  tail_ = static_cast<int64_t>(silent_);
  if (kept > 0) sink_(std::span<const float>(held_).first(kept));
  cut_ += static_cast<int64_t>(rest - kept);
  held_.clear();
  silent_ = 0;
}

double SilenceCutter::longest_pause() const { return static_cast<double>(longest_) / rate_; }
double SilenceCutter::tail_silence() const { return static_cast<double>(tail_) / rate_; }
double SilenceCutter::cut_seconds() const { return static_cast<double>(cut_) / rate_; }

AttemptReport judge_attempt(const AttemptFacts& facts) {
  AttemptReport report;
  const auto codes = static_cast<double>(facts.codes.size());
  const auto add = [&](const char* trouble, double cost) {
    report.troubles.emplace_back(trouble);
    report.cost += cost;
  };
  if (!facts.stopped) {
    const double usual = usual_codes_a_character * static_cast<double>(facts.characters);
    add("too long", std::max(1.0, codes - usual));
  }
  const auto least = static_cast<double>(code_least(facts.characters));
  if (codes < least) add("too short", 2 * static_cast<double>(facts.characters));
  if (const auto repetition = find_repetition(facts.codes)) {
    add("repetition", static_cast<double>(repetition->codes));
  }
  if (facts.longest_pause > most_pause || facts.tail_silence > most_tail) {
    add("silence", std::max(facts.longest_pause, facts.tail_silence) * facts.codes_a_second);
  }
  return report;
}

}  // namespace tandem
