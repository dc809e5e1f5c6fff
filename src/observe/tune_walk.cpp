#include "observe/tune_walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

class Walk {
 public:
  Walk(const TuneTask& task, const MeasureSettings& measure, const Enough& enough)
      : task_(task), measure_(measure), enough_(enough) {
    out_.found = task.guess;
    most_batch_ = task.most_batch;
  }

  TuneResult run() {
    take(task_.guess, tried("guess", task_.guess));
    out_.guess_reading = now_;
    // What cannot run at all says so; what is too large or too slow can be made smaller.
    if (now_.outcome == ProbeOutcome::failed)
      throw Error(ErrorKind::config, "the settings to begin with do not run: " + now_.words);
    if (now_.clips > 0) most_batch_ = std::min(most_batch_, now_.clips);
    if (!task_.generate) precision();
    batch();
    if (!task_.generate) {
      recompute();
      share_step();
      depth("data.num_workers", "workers", 1, task_.most_workers);
      depth("data.buffer_size", "buffer", 4, 400);
      buckets();
    } else {
      small_cache();
    }
    finish();
    return std::move(out_);
  }

 private:
  bool free(const std::string& key) const {
    return task_.guess.contains(key) && !task_.held.contains(key);
  }
  int64_t number(const std::string& key) const { return parse_int(out_.found.at(key)).value_or(1); }
  TuneSettings with(const std::string& key, const std::string& value) const {
    TuneSettings settings = out_.found;
    settings[key] = value;
    return settings;
  }
  bool faster(const TuneReading& one, const TuneReading& other) const {
    return one.fits() && (!other.fits() || one.speed > other.speed * (1 + task_.tolerance));
  }

  // Nothing is measured twice.
  TuneReading tried(const std::string& what, const TuneSettings& settings) {
    for (const TuneTrial& trial : out_.trials)
      if (trial.settings == settings) return trial.reading;
    out_.trials.push_back({what, settings, measure_(what, settings)});
    return out_.trials.back().reading;
  }
  void take(const TuneSettings& settings, const TuneReading& reading) {
    out_.found = settings;
    now_ = reading;
    if (!reading.fits()) return;
    proved_ = settings;
    proved_reading_ = reading;
  }
  bool out_of_time(const char* what) {
    if (!enough_()) return false;
    skipped_.emplace_back(what);
    return true;
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

  BatchChoice search(const char* what, int64_t first) {
    const BatchSearch request{.first = first,
                              .most = most_batch_,
                              .fixed_bytes = task_.fixed_bytes,
                              .bytes_a_clip = task_.bytes_a_clip,
                              .tolerance = task_.tolerance,
                              .speed_counts = task_.speed_counts};
    return search_batch(
        request,
        [&](int64_t size) { return tried(what, with(task_.batch_key(), std::to_string(size))); },
        enough_);
  }

  void batch() {
    const std::string key = task_.batch_key();
    if (!free(key)) {
      out_.largest_batch = now_.fits() ? number(key) : 0;
      return;
    }
    if (out_of_time("batch")) return;
    const int64_t first = task_.first_batch > 0 ? task_.first_batch : number(key);
    const BatchChoice choice = search("batch", first);
    out_.largest_batch = choice.largest;
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
          out_.largest_batch = choice.largest;
          take(with(task_.batch_key(), std::to_string(choice.batch)), choice.reading);
          return;
        }
      }
    } else if (nothing_fits) {
      const TuneReading same = tried("recompute", out_.found);
      if (same.fits()) return take(out_.found, same);
    }
    out_.found = before;
  }

  // As many clips a step as were asked for: accumulated where they do not fit at once.
  void share_step() {
    const std::string key = "training.gradient_accumulation_steps";
    if (!now_.fits() || !free(key) || !free(task_.batch_key())) return;
    const int64_t batch = number(task_.batch_key());
    const auto guessed = [&](const char* name) {
      return parse_int(task_.guess.at(name)).value_or(1);
    };
    int64_t least = guessed("data.batch_size") * guessed(key.c_str());
    if (now_.clips > 0) least = std::min(least, now_.clips);  // no clip twice in a step
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

  void finish() {
    if (!skipped_.empty())
      out_.notes.push_back("the time was up before these were tried: " + join(skipped_, ", "));
    if (now_.fits() && !enough_()) {
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
    // Fast settings that were found by luck do not replace better ones.
    const int64_t guessed = parse_int(task_.guess.at(task_.batch_key())).value_or(1);
    if (task_.speed_counts && guessed <= most_batch_ && faster(out_.guess_reading, now_)) {
      take(task_.guess, out_.guess_reading);
      out_.notes.emplace_back("the guess was faster than anything found: it stays");
    }
    out_.found_reading = now_;
  }

  const TuneTask& task_;
  const MeasureSettings& measure_;
  const Enough& enough_;
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

TuneResult walk_settings(const TuneTask& task, const MeasureSettings& measure,
                         const Enough& enough) {
  return Walk(task, measure, enough).run();
}

}  // namespace tandem
