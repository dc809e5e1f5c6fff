#include "observe/tune_walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "observe/tune_choice.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

class Walk {
 public:
  Walk(const TuneTask& task, const MeasureSettings& measure, const Enough& enough,
       const SecondsLeft& left)
      : task_(task), measure_(measure), enough_(enough), left_(left) {
    out_.found = task.guess;
    out_.guess_reading.outcome = ProbeOutcome::not_tried;
    most_batch_ = task.most_batch;
  }

  TuneResult run() {
    if (task_.generate)
      generating();
    else
      training();
    finish();
    return std::move(out_);
  }

 private:
  void training() {
    begin("guess", task_.guess);
    out_.guess_reading = now_;
    precision();
    batch();
    recompute();
    share_step();
    depth("data.num_workers", "workers", 1, task_.most_workers);
    depth("data.buffer_size", "buffer", 4, 400);
    buckets();
  }

  // The guess is what fits: one measurement of so many clips may take all the time there is. The
  // rate of smaller batches says whether it is worth it.
  void generating() {
    constexpr int64_t moderate = 64;
    const std::string key = task_.batch_key();
    const int64_t guessed = number(key);
    const bool smaller = free(key) && guessed > moderate;
    begin(smaller ? "batch" : "guess", smaller ? with(key, std::to_string(moderate)) : task_.guess);
    if (!smaller) out_.guess_reading = now_;
    batch();
    small_cache();
    const bool told = out_.guess_reading.outcome != ProbeOutcome::not_tried;
    if (!told && (measured(task_.guess) || !would_take_too_long(guessed)))
      out_.guess_reading = tried("guess", task_.guess);
  }

  bool free(const std::string& key) const {
    return task_.guess.contains(key) && !task_.held.contains(key);
  }
  int64_t number(const std::string& key) const { return parse_int(out_.found.at(key)).value_or(1); }
  TuneSettings with(const std::string& key, const std::string& value) const {
    TuneSettings settings = out_.found;
    settings[key] = value;
    return settings;
  }
  double doubt(const TuneReading& one, const TuneReading& other) const {
    return in_doubt(one, other, task_.tolerance);
  }
  bool faster(const TuneReading& one, const TuneReading& other) const {
    return one.fits() && (!other.fits() || one.speed > other.speed * (1 + doubt(one, other)));
  }

  const TuneTrial* measured(const TuneSettings& settings) const {
    const auto found = std::ranges::find(out_.trials, settings, &TuneTrial::settings);
    return found == out_.trials.end() ? nullptr : &*found;
  }
  // Nothing is measured twice.
  TuneReading tried(const std::string& what, const TuneSettings& settings) {
    if (const TuneTrial* trial = measured(settings)) return trial->reading;
    out_.trials.push_back({what, settings, measure_(what, settings)});
    return out_.trials.back().reading;
  }
  // What cannot run at all says so; what is too large or too slow can be made smaller.
  void begin(const char* what, const TuneSettings& settings) {
    take(settings, tried(what, settings));
    if (now_.outcome == ProbeOutcome::failed)
      throw Error(ErrorKind::config, "the settings to begin with do not run: " + now_.words);
    if (now_.clips > 0) most_batch_ = std::min(most_batch_, now_.clips);
  }
  void take(const TuneSettings& settings, const TuneReading& reading) {
    out_.found = settings;
    now_ = reading;
    if (!reading.fits()) return;
    proved_ = settings;
    proved_reading_ = reading;
  }
  // The next measurement takes about as long as the last.
  bool time_is_up() const {
    if (enough_()) return true;
    return left_ && !out_.trials.empty() && out_.trials.back().reading.seconds > left_();
  }
  bool out_of_time(const char* what) {
    if (!time_is_up()) return false;
    skipped_.emplace_back(what);
    return true;
  }
  // A batch of so many clips, by the longest measurement there was: as many times as long.
  bool would_take_too_long(int64_t batch) const {
    if (time_is_up()) return true;
    double seconds = 0, clips = 1;
    for (const TuneTrial& trial : out_.trials) {
      if (trial.reading.seconds < seconds) continue;
      seconds = trial.reading.seconds;
      clips = parse_double(trial.settings.at(task_.batch_key())).value_or(1);
    }
    return left_ && seconds * std::max(1.0, static_cast<double>(batch) / clips) > left_();
  }

  void precision() {
    const std::string key = "training.precision";
    if (!free(key) || !now_.fits() || !task_.speed_counts) return;
    for (const std::string& precision : task_.precisions) {
      if (precision == out_.found.at(key)) continue;
      if (out_of_time("precision")) return;
      const TuneSettings settings = with(key, precision);
      const TuneReading reading = tried("precision", settings);
      if (faster(reading, now_)) take(settings, reading);
    }
  }

  BatchChoice search(const char* what, int64_t first, bool climbs = false) {
    const BatchSearch request{.first = first,
                              .most = most_batch_,
                              .fixed_bytes = task_.fixed_bytes,
                              .bytes_a_clip = task_.bytes_a_clip,
                              .tolerance = task_.tolerance,
                              .speed_counts = task_.speed_counts,
                              .climbs = climbs};
    return search_batch(
        request,
        [&](int64_t size) { return tried(what, with(task_.batch_key(), std::to_string(size))); },
        enough_, left_);
  }

  void batch() {
    const std::string key = task_.batch_key();
    if (!free(key)) return;
    if (out_of_time("batch")) return;
    const bool known = task_.first_batch > 0 && !task_.generate;
    note_largest(search("batch", known ? task_.first_batch : number(key),
                        task_.generate && task_.speed_counts),
                 key);
  }
  void note_largest(const BatchChoice& choice, const std::string& key) {
    out_.largest_batch = choice.largest;
    out_.largest_is_the_limit = choice.limited;
    if (choice.batch > 0) take(with(key, std::to_string(choice.batch)), choice.reading);
  }

  // Computing again costs time and gives memory: worth it where a larger batch makes up for it, or
  // where nothing fits without.
  void recompute() {
    const std::string key = "training.recompute";
    if (!task_.recompute || !free(key) || out_.found.at(key) == "true") return;
    const bool nothing_fits = !now_.fits();
    if (!nothing_fits && (!task_.speed_counts || now_.limit_bytes <= 0)) return;
    if (out_of_time("recompute")) return;
    const TuneSettings before = out_.found;
    const int64_t largest = out_.largest_batch;
    out_.found[key] = "true";
    const int64_t twice = std::min(most_batch_, 2 * std::max<int64_t>(1, largest));
    if (free(task_.batch_key()) && (nothing_fits || twice > largest)) {
      const TuneReading larger = tried("recompute", with(task_.batch_key(), std::to_string(twice)));
      if (nothing_fits || faster(larger, now_)) {
        const BatchChoice choice = search("recompute", twice);
        if (choice.batch > 0 && (nothing_fits || faster(choice.reading, now_))) {
          return note_largest(choice, task_.batch_key());
        }
      }
    } else if (nothing_fits) {
      const TuneReading same = tried("recompute", out_.found);
      if (same.fits()) return take(out_.found, same);
    }
    out_.found = before;
  }

  // As many clips a step as were asked for, or guessed: accumulated where they do not fit at once.
  // A batch that is smaller because that is faster is no reason.
  void share_step() {
    const std::string key = "training.gradient_accumulation_steps";
    if (!now_.fits() || !free(key) || !free(task_.batch_key())) return;
    const int64_t batch = number(task_.batch_key());
    const auto guessed = [&](const char* name) {
      return parse_int(task_.guess.at(name)).value_or(1);
    };
    int64_t least = guessed("data.batch_size") * guessed(key.c_str());
    if (now_.clips > 0) least = std::min(least, now_.clips);  // no clip twice in a step
    const bool fit = !out_.largest_is_the_limit || out_.largest_batch >= least;
    if (task_.clips_a_step <= 0 && fit) {
      if (now_.clips > 0 && batch * guessed(key.c_str()) > now_.clips) out_.found[key] = "1";
      return;
    }
    const int64_t wanted = task_.clips_a_step > 0 ? task_.clips_a_step : std::max(batch, least);
    const int64_t parts = (wanted + batch - 1) / batch;
    out_.found[key] = std::to_string(parts);
    if (task_.clips_a_step > 0 || parts > 1)
      out_.found[task_.batch_key()] = std::to_string((wanted + parts - 1) / parts);
  }

  void depth(const std::string& key, const char* what, int64_t least, int64_t most) {
    if (!free(key) || !now_.fits() || !task_.speed_counts || out_of_time(what)) return;
    take(out_.found, tried(what, out_.found));
    if (!now_.fits()) return back_to_proved();
    const DepthSearch request{
        .current = number(key), .least = least, .most = most, .tolerance = task_.tolerance};
    const auto [value, reading] = search_depth(
        request, now_, [&](int64_t size) { return tried(what, with(key, std::to_string(size))); },
        enough_);
    take(with(key, std::to_string(value)), reading);
  }

  void buckets() {
    const std::string key = "data.buckets";
    if (!task_.buckets || !free(key) || !now_.fits() || !task_.speed_counts) return;
    const int64_t guessed = number(key);
    for (const int64_t count : {guessed / 2, guessed * 2}) {
      if (count < 1 || count > 64) continue;
      if (out_of_time("buckets")) return;
      const TuneSettings settings = with(key, std::to_string(count));
      const TuneReading reading = tried("buckets", settings);
      if (faster(reading, now_)) take(settings, reading);
    }
  }

  // Told, not taken: it changes the sound a little.
  void small_cache() {
    const std::string key = "generation.kv_cache";
    if (!free(key) || out_.found.at(key) != "same" || !now_.fits() || !task_.speed_counts) return;
    if (now_.limit_bytes <= 0 || out_of_time("kv_cache")) return;
    TuneSettings settings = with(key, "int8");
    const int64_t more = std::min(most_batch_, number(task_.batch_key()) * 3 / 2);
    if (free(task_.batch_key())) settings[task_.batch_key()] = std::to_string(more);
    const TuneReading reading = tried("kv_cache", settings);
    if (!faster(reading, now_)) return;
    out_.notes.push_back(fmt::format(
        "generation.kv_cache=int8 with {} clips at once makes {:.2f} clips/s instead of {:.2f}; it "
        "was not taken, because it changes the sound a little",
        settings.at(task_.batch_key()), reading.speed, now_.speed));
  }

  // To the last settings that ran as they are.
  void back_to_proved() {
    if (!proved_reading_.fits()) return;
    out_.notes.push_back(fmt::format("{} did not run ({}): taken back to {}", describe(out_.found),
                                     to_string(now_.outcome), describe(proved_)));
    take(TuneSettings(proved_), TuneReading(proved_reading_));
  }
  std::string describe(const TuneSettings& settings) const {
    std::vector<std::string> words;
    for (const auto& [key, value] : settings)
      if (value != task_.guess.at(key)) words.push_back(key + "=" + value);
    return words.empty() ? "the guess" : join(words, " ");
  }

  // Whether these could be found: what they cost in memory, sound and clips a step is as asked for.
  bool allowed(const TuneTrial& trial) const {
    const TuneReading& reading = trial.reading;
    const auto same = [&](const char* key, const TuneSettings& as) {
      return !trial.settings.contains(key) || trial.settings.at(key) == as.at(key);
    };
    const int64_t size = parse_int(trial.settings.at(task_.batch_key())).value_or(1);
    const bool roomy = reading.limit_bytes <= 0 ||
                       reading.peak_bytes <= BatchSearch{}.used_share * reading.limit_bytes;
    return reading.fits() && roomy && size <= most_batch_ &&
           same("generation.kv_cache", task_.guess) &&
           same("training.gradient_accumulation_steps", out_.found) &&
           (task_.clips_a_step <= 0 || same(task_.batch_key(), out_.found));
  }

  void take_best() {
    const TuneTrial* best = best_trial(
        out_.trials, [this](const TuneTrial& trial) { return allowed(trial); }, task_.tolerance);
    if (best) take(TuneSettings(best->settings), TuneReading(best->reading));
  }

  void finish() {
    if (now_.fits() && !time_is_up()) {
      const TuneReading together = tried("all together", out_.found);
      if (together.outcome == ProbeOutcome::too_slow)
        out_.notes.emplace_back("the time was up before all of it was measured together");
      else
        take(out_.found, together);
    }
    if (!now_.fits()) back_to_proved();
    if (!now_.fits()) {
      throw Error(ErrorKind::memory, fmt::format("nothing that was tried fits this machine ({})",
                                                 to_string(now_.outcome)))
          .hint(now_.outcome == ProbeOutcome::too_slow
                    ? "more --minutes"
                    : "a smaller model, shorter clips, or a device with more memory");
    }
    if (!skipped_.empty())
      out_.notes.push_back("the time was up before these were tried: " + join(skipped_, ", "));
    if (task_.speed_counts) take_best();
    if (task_.speed_counts && out_.trials.size() > 1 && out_.found == task_.guess)
      out_.notes.emplace_back("the guess was as good as anything found: it stays");
    out_.found_reading = now_;
  }

  const TuneTask& task_;
  const MeasureSettings& measure_;
  const Enough& enough_;
  const SecondsLeft& left_;
  TuneResult out_;
  TuneReading now_;  // of out_.found
  int64_t most_batch_ = 0;
  TuneSettings proved_;  // the last that ran as they are
  TuneReading proved_reading_;
  std::vector<std::string> skipped_;
};

}  // namespace

int expected_trials(const TuneTask& task) {
  const auto free = [&](const char* key) {
    return task.guess.contains(key) && !task.held.contains(key);
  };
  int count = 2;  // the guess, and all together
  if (free(task.batch_key())) count += task.speed_counts ? 6 : 4;
  if (task.generate) return count + (task.speed_counts && free("generation.kv_cache") ? 1 : 0);
  if (!task.speed_counts) return count;
  if (free("training.precision")) count += static_cast<int>(task.precisions.size());
  if (free("training.recompute") && task.recompute) count += 1;
  if (free("data.num_workers")) count += 3;
  if (free("data.buffer_size")) count += 3;
  if (free("data.buckets") && task.buckets) count += 2;
  return count;
}

TuneResult walk_settings(const TuneTask& task, const MeasureSettings& measure, const Enough& enough,
                         const SecondsLeft& left) {
  return Walk(task, measure, enough, left).run();
}

}  // namespace tandem
