#include "observe/checks_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "audio/file/audio_file.h"
#include "audio/file/content.h"
#include "data/corpus/dataset.h"
#include "tandem/error.h"
#include "util/clock.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

std::string share_text(int64_t part, int64_t whole) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) /
                                     static_cast<double>(std::max<int64_t>(whole, 1)));
}

FileRange range_of(const FoundClip& found, const std::string& root) {
  const fs::path path = found.clip.path;
  return {.path = path.is_absolute() ? path.string() : (fs::path(root) / path).string(),
          .offset = found.clip.offset,
          .bytes = found.clip.offset > 0 && found.clip.bytes > 0 ? found.clip.bytes : -1};
}

bool needs_ffmpeg(const FileRange& range) {
  std::array<char, 64> head{};
  std::ifstream file(range.path, std::ios::binary);
  file.seekg(range.offset);
  file.read(head.data(), head.size());
  const std::span<const char> bytes(head.data(), static_cast<size_t>(file.gcount()));
  return recognise(std::as_bytes(bytes), range.path).reader == Reader::ffmpeg;
}

void open_one(const FileRange& range, const DatasetLimits& limits, DatasetFacts& facts) {
  ++facts.opened;
  try {
    const auto sound =
        open_audio({range.path, range.offset, range.bytes}, {.native = limits.native});
    const AudioInfo& info = sound->info();
    ++facts.formats[info.format];
    ++facts.rates[info.sample_rate];
    facts.native += info.native;
    facts.by_ffmpeg += needs_ffmpeg(range);
    facts.seconds += info.seconds();
    facts.sounds.push_back(range);
  } catch (const Error& error) {
    ++facts.broken;
    if (facts.example.empty()) facts.example = error.what();
  }
}

template <class Key>
std::string counts_text(const std::map<Key, int64_t>& counts, int64_t whole,
                        const std::string& unit) {
  std::vector<std::pair<int64_t, Key>> order;
  for (const auto& [key, count] : counts) order.emplace_back(-count, key);
  std::sort(order.begin(), order.end());
  std::vector<std::string> words;
  constexpr size_t told = 4;
  for (size_t i = 0; i < std::min(told, order.size()); ++i)
    words.push_back(fmt::format("{}{} {}", order[i].second, unit,
                                order.size() == 1 ? "" : share_text(-order[i].first, whole)));
  if (order.size() > told) words.push_back(fmt::format("{} more", order.size() - told));
  for (std::string& word : words) word = trim(word);
  return join(words, ", ");
}

Check check_clips(const DatasetFacts& facts, const DatasetLimits& limits) {
  Check check{.name = "dataset", .found = fmt::format("{}; {} clips", facts.why, facts.clips)};
  const double rows = static_cast<double>(facts.bad_rows) /
                      static_cast<double>(std::max<int64_t>(facts.clips + facts.bad_rows, 1));
  const double broken =
      static_cast<double>(facts.broken) / static_cast<double>(std::max<int64_t>(facts.opened, 1));
  if (facts.bad_rows > 0) check.found += fmt::format(", {} rows that name no clip", facts.bad_rows);
  check.found += fmt::format("; {} of {} opened are broken", facts.broken, facts.opened);
  if (!facts.example.empty()) check.found += ": " + facts.example;
  if (facts.clips == 0) {
    check.verdict = Verdict::fail;
    check.advice = "name the folder that holds the table and the sounds";
  } else if (std::max(rows, broken) > limits.max_bad_share) {
    check.verdict = Verdict::fail;
    check.advice = fmt::format(
        "training stops above {:.0f} % (data.max_bad_share): tandem prepare lists them all",
        100 * limits.max_bad_share);
  } else if (facts.broken + facts.bad_rows > 0) {
    check.verdict = std::max(rows, broken) > limits.warn_bad_share ? Verdict::warn : Verdict::pass;
    check.advice = "they are left out; tandem prepare lists them all";
  }
  return check;
}

Check check_formats(const DatasetFacts& facts, const DatasetLimits& limits) {
  const int64_t good = facts.opened - facts.broken;
  Check check{.name = "formats", .found = counts_text(facts.formats, good, "")};
  if (limits.native)
    check.found += fmt::format("; {} read by the native reader", share_text(facts.native, good));
  if (2 * facts.by_ffmpeg > good) {
    check.verdict = Verdict::warn;
    check.advice =
        "each of these starts the program ffmpeg: convert them to WAV or FLAC, or keep what is "
        "computed from them (tandem prepare DIR --cache codes,mels)";
  }
  return check;
}

Check check_rates(const DatasetFacts& facts, const DatasetLimits& limits) {
  const int64_t good = facts.opened - facts.broken;
  Check check{.name = "sample rates", .found = counts_text(facts.rates, good, " Hz")};
  int64_t low = 0, other = 0;
  for (const auto& [rate, count] : facts.rates) {
    if (rate < limits.sample_rate) low += count;
    if (rate != limits.sample_rate) other += count;
  }
  check.found += other == 0 ? ", as training wants them"
                            : fmt::format("; {} resampled to {} Hz", share_text(other, good),
                                          limits.sample_rate);
  // 16 kHz speech is common and usable; less has lost its consonants.
  constexpr int narrow = 16000;
  int64_t narrow_clips = 0;
  for (const auto& [rate, count] : facts.rates) narrow_clips += rate < narrow ? count : 0;
  if (10 * narrow_clips > good) {
    check.verdict = Verdict::warn;
    check.advice = fmt::format(
        "{} are below 16 kHz: nothing above {} Hz is in them and the voice will sound dull; use "
        "better recordings",
        share_text(narrow_clips, good), facts.rates.begin()->first / 2);
  } else if (2 * low > good) {
    check.advice =
        fmt::format("sounds below {} Hz are scaled up and gain nothing by it", limits.sample_rate);
  }
  return check;
}

Check check_text_file(const std::string& path) {
  Check check{.name = "dataset"};
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  const auto bytes = folder ? 0 : fs::file_size(path, error);
  if (!folder && !error && bytes > 0) {
    check.found = fmt::format("`{}`, {} of text", path, format_bytes(bytes));
    return check;
  }
  check.verdict = Verdict::fail;
  check.found = folder  ? fmt::format("`{}` is a folder", path)
                : error ? fmt::format("`{}`: {}", path, error.message())
                        : fmt::format("`{}` is empty", path);
  check.advice = "the stage `bytes` reads one file of text; for sounds choose --stage gpt";
  return check;
}

}  // namespace

DatasetFacts look_at_dataset(const std::string& path, const DatasetLimits& limits) {
  const Dataset dataset = read_dataset(detect_dataset(path));
  DatasetFacts facts{.why = dataset.layout.why,
                     .clips = static_cast<int64_t>(dataset.clips.size()),
                     .bad_rows = static_cast<int64_t>(dataset.bad_rows.size())};
  const int64_t some = std::min(facts.clips, std::max<int64_t>(limits.most_clips, 1));
  const auto start = Clock::now();
  for (int64_t i = 0; i < some && seconds_since(start) < limits.most_seconds; ++i) {
    const auto place = static_cast<size_t>(i * facts.clips / some);
    open_one(range_of(dataset.clips[place], dataset.layout.root), limits, facts);
  }
  if (facts.example.empty() && !dataset.bad_rows.empty())
    facts.example = dataset.bad_rows[0].where + ": " + dataset.bad_rows[0].sentence;
  return facts;
}

std::vector<Check> check_dataset(const DatasetFacts& facts, const DatasetLimits& limits) {
  std::vector<Check> checks{check_clips(facts, limits)};
  if (facts.opened == facts.broken) return checks;
  checks.push_back(check_formats(facts, limits));
  checks.push_back(check_rates(facts, limits));
  return checks;
}

std::vector<Check> check_data(const std::string& path, bool text, const DatasetLimits& limits,
                              const ReadTrial& trial) {
  std::vector<Check> checks;
  DatasetFacts facts;
  if (text) {
    checks.push_back(check_text_file(path));
    if (checks[0].verdict == Verdict::fail) return checks;
    facts.sounds = {{.path = path}};
  } else {
    try {
      facts = look_at_dataset(path, limits);
    } catch (const Error& error) {
      return {
          {.verdict = Verdict::fail,
           .name = "dataset",
           .found = error.what(),
           .advice = error.hint().empty() ? "name the folder or index to train on" : error.hint()}};
    }
    checks = check_dataset(facts, limits);
  }
  checks.push_back(check_storage_kind("data's disk", storage_of(path)));
  if (facts.sounds.empty()) return checks;
  const ReadSpeed speed = read_cold(facts.sounds, trial);
  const double whole = static_cast<double>(facts.sounds.size());
  // Parts of long sounds and a trial that ended early: the share of the files stands for its time.
  const double heard = facts.seconds * static_cast<double>(speed.files) / whole;
  checks.push_back(check_read_speed(speed, heard));
  return checks;
}

}  // namespace tandem
