#include "observe/tune_preset.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

const char* const train_mark = "# == tandem tune --for train ==";
const char* const generate_mark = "# == tandem tune --for generate ==";

const char* mark_of(bool generate) { return generate ? generate_mark : train_mark; }

std::string bytes(double value) {
  return format_bytes(static_cast<uint64_t>(std::max(0.0, value)));
}

std::string memory(const TuneReading& reading) {
  std::string text = bytes(reading.peak_bytes);
  if (reading.limit_bytes > 0) {
    text += fmt::format(" of {} ({:.0f} %)", bytes(reading.limit_bytes),
                        100 * reading.peak_bytes / reading.limit_bytes);
  }
  return text;
}

// Rows of the comparison: name, guess, found.
std::vector<std::vector<std::string>> rows_of(const TuneReport& report) {
  const TuneResult& result = report.result;
  const TuneReading &guess = result.guess_reading, &found = result.found_reading;
  std::vector<std::vector<std::string>> rows = {{"", report.guess_name, "found"}};
  for (const auto& [key, value] : result.found)
    rows.push_back({key, report.task.guess.at(key), value});
  const auto speed = [&](const TuneReading& reading) {
    return reading.fits() ? fmt::format("{:.2f}", reading.speed)
                          : std::string(to_string(reading.outcome));
  };
  const auto if_fits = [](const TuneReading& reading, const std::string& text) {
    return reading.fits() ? text : std::string("-");
  };
  rows.push_back({report.unit, speed(guess), speed(found)});
  rows.push_back({"memory", if_fits(guess, memory(guess)), if_fits(found, memory(found))});
  if (!report.task.generate) {
    const auto waits = [](const TuneReading& reading) {
      return fmt::format("{:.1f} %", 100 * reading.wait_share);
    };
    rows.push_back({"waits for data", if_fits(guess, waits(guess)), if_fits(found, waits(found))});
  }
  if (guess.fits() && guess.speed > 0)
    rows.push_back({"times the guess", "1.00", fmt::format("{:.2f}", found.speed / guess.speed)});
  return rows;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, const std::string& before) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = before;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string largest_words(const TuneResult& result) {
  if (result.largest_batch == 0) return "largest batch that fits: not looked for";
  return result.largest_is_the_limit
             ? fmt::format("largest batch that fits: {}", result.largest_batch)
             : fmt::format("largest batch tried: {}; more was not looked for",
                           result.largest_batch);
}

// A setting's value as YAML reads it back.
std::string yaml_values(const TuneSettings& settings) {
  std::string text, section;
  for (const auto& [key, value] : settings) {  // sorted: a section's keys stand together
    const size_t dot = key.find('.');
    if (key.substr(0, dot) != section) {
      section = key.substr(0, dot);
      text += section + ":\n";
    }
    text += fmt::format("  {}: {}\n", key.substr(dot + 1), value);
  }
  return text;
}

// The part that begins with `mark`, up to the next one.
std::string part_of(const std::string& text, const char* mark, const char* other) {
  const size_t start = text.find(mark);
  if (start == std::string::npos) return "";
  const size_t end = text.find(other, start);
  return text.substr(start, end == std::string::npos ? end : end - start);
}

nlohmann::ordered_json json_of(const TuneReading& reading) {
  return {{"outcome", to_string(reading.outcome)},
          {"speed", reading.speed},
          {"deviation", reading.deviation},
          {"steps", reading.steps},
          {"how", reading.how},
          {"peak_bytes", reading.peak_bytes},
          {"limit_bytes", reading.limit_bytes},
          {"wait_share", reading.wait_share},
          {"seconds", reading.seconds}};
}

}  // namespace

std::string describe_reading(const TuneReading& reading, const std::string& unit) {
  if (reading.outcome == ProbeOutcome::failed && !reading.words.empty())
    return "failed: " + reading.words;
  if (!reading.fits()) return to_string(reading.outcome);
  std::string text = fmt::format("{:.2f} {} ± {:.0f} %, {}", reading.speed, unit,
                                 100 * reading.deviation, memory(reading));
  if (reading.wait_share > 0) text += fmt::format(", waits {:.1f} %", 100 * reading.wait_share);
  return text;
}

std::string describe_change(const TuneSettings& settings, const TuneSettings& from) {
  std::vector<std::string> words;
  for (const auto& [key, value] : settings) {
    const auto before = from.find(key);
    if (before == from.end() || before->second != value) words.push_back(key + "=" + value);
  }
  return words.empty() ? "as guessed" : join(words, " ");
}

std::string tune_table(const TuneReport& report) { return aligned(rows_of(report), ""); }

std::string tune_json(const TuneReport& report, const std::string& file) {
  const TuneResult& result = report.result;
  nlohmann::ordered_json document{{"for", report.task.generate ? "generate" : "train"},
                                  {"gpu", report.gpu},
                                  {"subject", report.subject},
                                  {"unit", report.unit},
                                  {"file", file},
                                  {"seconds", report.seconds},
                                  {"largest_batch", result.largest_batch},
                                  {"largest_batch_is_the_limit", result.largest_is_the_limit},
                                  {"found", result.found},
                                  {"found_reading", json_of(result.found_reading)},
                                  {"guess_name", report.guess_name},
                                  {"guess", report.task.guess},
                                  {"guess_reading", json_of(result.guess_reading)},
                                  {"notes", result.notes}};
  document["trials"] = nlohmann::ordered_json::array();
  for (const TuneTrial& trial : result.trials) {
    document["trials"].push_back({{"what", trial.what},
                                  {"settings", trial.settings},
                                  {"reading", json_of(trial.reading)},
                                  {"words", trial.reading.words}});
  }
  // What a failed program said, and the names of files, may be in any encoding.
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string preset_part(const TuneReport& report) {
  const TuneResult& result = report.result;
  std::string text =
      fmt::format("{}\n# {}: {}\n# {}, {} measurements in {}.\n#\n", mark_of(report.task.generate),
                  report.gpu.empty() ? "the CPU" : report.gpu, report.subject, report.date,
                  result.trials.size(), format_seconds(report.seconds));
  text += aligned(rows_of(report), "# ");
  text += "# " + largest_words(result) + "\n#\n# Measured:\n";
  for (const TuneTrial& trial : result.trials) {
    text += fmt::format("#   {:<12} {}: {}\n", trial.what,
                        describe_change(trial.settings, report.task.guess),
                        describe_reading(trial.reading, report.unit));
  }
  for (const TuneTrial& trial : result.trials) {
    if (trial.reading.how.empty()) continue;
    text += "# Speeds are those of " + trial.reading.how + ".\n";
    break;
  }
  for (const std::string& note : result.notes) text += "# Note: " + note + ".\n";
  // A comment ends with its line, whatever a failed program said.
  std::ranges::replace(text, '\r', ' ');
  return text + yaml_values(result.found);
}

void check_preset_file(const fs::path& file) {
  if (!fs::exists(file)) {
    fs::path above = fs::absolute(file).parent_path();
    while (above.has_relative_path() && !fs::exists(above)) above = above.parent_path();
    if (fs::is_directory(above) && access(above.c_str(), W_OK) == 0) return;
    throw Error(ErrorKind::io, fmt::format("cannot write `{}`: nothing can be made in `{}`",
                                           file.string(), above.string()))
        .hint("give another file with --out");
  }
  if (fs::is_directory(file))
    throw Error(ErrorKind::io, fmt::format("cannot write `{}`: it is a folder", file.string()));
  // It is replaced as a whole: its folder has to let that happen.
  if (const fs::path folder = fs::absolute(file).parent_path(); access(folder.c_str(), W_OK) != 0)
    throw Error(ErrorKind::io, fmt::format("cannot write `{}`: nothing can be made in `{}`",
                                           file.string(), folder.string()))
        .hint("give another file with --out");
  const std::string text = read_file(file);
  if (text.empty() || text.starts_with(train_mark) || text.starts_with(generate_mark)) return;
  throw Error(ErrorKind::io,
              fmt::format("`{}` is there and was not written by `tandem tune`", file.string()))
      .hint("give another file with --out, or move that one away");
}

void write_preset_part(const fs::path& file, const TuneReport& report) {
  check_preset_file(file);
  const bool generate = report.task.generate;
  const std::string old = fs::exists(file) ? read_file(file) : "";
  const std::string kept = part_of(old, mark_of(!generate), mark_of(generate));
  if (file.has_parent_path()) make_folder(file.parent_path());
  const std::string mine = preset_part(report);
  write_file_atomically(file, generate ? kept + mine : mine + kept);
}

}  // namespace tandem
