#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/session.h"
#include "config/schema.h"
#include "observe/diagnose/diagnosis_text.h"
#include "observe/diagnose/made_speech.h"
#include "observe/diagnose/measure.h"
#include "observe/diagnose/recorded.h"
#include "observe/diagnose/training_subject.h"
#include "tandem/error.h"
#include "util/child_process.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

// "num_workers" of "data.num_workers": what a user may write as well.
std::string short_name(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// Whether `word` (`key=value`, `+key=value`, `~key`) gives one of `settings` a value.
bool sets_one_of(const std::string& word, const Words& settings) {
  std::string name = word.substr(0, word.find('='));
  if (!name.empty() && (name[0] == '+' || name[0] == '~')) name.erase(0, 1);
  return std::ranges::any_of(settings, [&](const std::string& one) {
    const std::string key = one.substr(0, one.find('='));
    const Setting* setting = find_by_key(key);
    const auto is_it = [&](const std::string& other) {
      return name == other || name == short_name(other);
    };
    return is_it(key) || (setting && (std::ranges::any_of(setting->aliases, is_it) ||
                                      std::ranges::any_of(setting->old_names, is_it)));
  });
}

// The user's own words, without those that say otherwise, and the settings to try.
Words words_with(const Arguments& arguments, const Words& settings, const std::string& data_flag) {
  Words words;
  for (const char* flag : {"--config", "--preset", "--simulate-gpus", "--split-gpu"})
    if (arguments.has(flag)) words.insert(words.end(), {flag, arguments.value(flag)});
  if (arguments.has("--data")) words.insert(words.end(), {data_flag, arguments.value("--data")});
  for (const auto& [flag, value] : arguments.settings) {
    const Setting* setting = find_by_flag(flag);
    if (setting && sets_one_of(setting->key + "=", settings)) continue;
    // A switch was given as `--multi-gpu`, and stands as such in a command.
    if (setting && setting->type == Type::boolean) {
      words.push_back(setting->key + "=" + value);
    } else {
      words.insert(words.end(), {flag, value});
    }
  }
  for (const std::string& word : arguments.rest)
    if (!sets_one_of(word, settings)) words.push_back(word);
  words.insert(words.end(), settings.begin(), settings.end());
  return words;
}

// As a shell takes it: within single quotes everything is itself but the quote.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_line(const Words& words) {
  std::string line = "tandem";
  for (const std::string& word : words) {
    const bool plain =
        word.find_first_of(" \t\n'\"$&|;<>()*?`\\#![]{}~") == std::string::npos && !word.empty();
    line += " " + (plain ? word : quoted(word));
  }
  return line;
}

// `stage`: what was measured, where the user named none that fits the data; else empty.
std::string command_to_try(const Arguments& arguments, const Remedy& remedy,
                           const std::string& stage) {
  if (remedy.empty()) return "";
  if (!remedy.command.empty()) return command_line(remedy.command);
  Words words{"train"};
  if (arguments.has("--run")) {
    const std::string settings = (fs::path(arguments.value("--run")) / "config.yaml").string();
    words.insert(words.end(), {"--config", settings});
    words.insert(words.end(), remedy.settings.begin(), remedy.settings.end());
  } else {
    Words settings = remedy.settings;
    if (!stage.empty()) settings.push_back("training.stage=" + stage);
    const Words rest = words_with(arguments, settings, "--train-data");
    words.insert(words.end(), rest.begin(), rest.end());
  }
  return command_line(words);
}

std::string run_tandem(const Words& words) {
  Words all{"/proc/self/exe"};
  all.insert(all.end(), words.begin(), words.end());
  ChildProcess child(all, {.foreground = true});
  if (child.start_error() != 0)
    throw Error(ErrorKind::io, fmt::format("cannot start `{}`: {}", command_line(words),
                                           std::strerror(child.start_error())));
  std::string text = child.read_all();
  const int code = child.wait();
  if (code == 0) return text;
  if (stop_requested() != StopRequest::none)
    throw Error(ErrorKind::interrupted, "stopped before the remedy was measured");
  throw Error(ErrorKind::device, fmt::format("`{}` ended with {}: the remedy cannot be tried here",
                                             command_line(words), code));
}

// Measures again, in a process of its own (devices are configured once a process), with the remedy.
Json apply(const Arguments& arguments, const Diagnosis& diagnosis) {
  const Remedy& remedy = diagnosis.remedy;
  const bool prepares = !remedy.command.empty() && remedy.command.front() == "prepare";
  if (remedy.settings.empty() && !prepares) return Json();
  if (prepares) {
    Words words = remedy.command;
    words.emplace_back("--quiet");
    run_tandem(words);
  }
  Words words = words_with(arguments, remedy.settings, "--data");
  words.insert(words.begin(), {"diagnose", "--json", "--quiet"});
  if (arguments.has("--num-batches"))
    words.insert(words.end(), {"--num-batches", arguments.value("--num-batches")});
  log_info("trying it: {}", command_line(words));
  const Json after = Json::parse(run_tandem(words), nullptr, false);
  if (!after.is_object() || !after.contains("named_figures"))
    throw Error(ErrorKind::internal, "the second measurement printed no JSON object");
  const auto now = after["named_figures"][to_string(diagnosis.verdict)].get<double>();
  const auto clip = [](const Json& figures) {
    return figures["fed_step"]["median"].get<double>() /
           std::max(1.0, figures["clips_per_batch"].get<double>());
  };
  return {{"figure", diagnosis.named.words},
          {"before", diagnosis.named.value},
          {"after", now},
          {"improved", now < diagnosis.named.value},
          {"seconds_per_clip_after", clip(after["figures"])},
          {"verdict_after", after["verdict"]}};
}

std::string describe_change(const Json& change) {
  if (change.is_null()) return "Applied: nothing; this remedy is not a setting.\n";
  return fmt::format("Applied: {}: {:.4g} before, {:.4g} after ({}); verdict now: {}\n",
                     change["figure"].get<std::string>(), change["before"].get<double>(),
                     change["after"].get<double>(),
                     change["improved"].get<bool>() ? "better" : "not better",
                     change["verdict_after"].get<std::string>());
}

struct Examined {
  Figures figures;
  Circumstances now;
};

Examined examine_run(const std::string& folder) {
  RecordedRun run = recorded_figures(folder);
  log_info("{}: {}", folder, standing_of(read_run(folder).events).words);
  return {std::move(run.figures), std::move(run.now)};
}

Examined examine_machine(const Arguments& arguments, Config config) {
  const auto batches = arguments.integer("--num-batches").value_or(50);
  if (batches < 10)
    throw Error(ErrorKind::usage, fmt::format("--num-batches is {}; expected 10 or more", batches));
  if (arguments.has("--data")) config.data.train_data = arguments.value("--data");
  std::unique_ptr<MadeSpeech> made;
  if (!config.data.train_data && fs::is_directory(config.paths.data_dir)) {
    config.data.train_data = config.paths.data_dir;
  } else if (!config.data.train_data) {
    made = std::make_unique<MadeSpeech>();
    config.data.train_data = made->folder().string();
    log_warning("no data was given: this machine is measured with 64 made clips (--data DIR)");
  }
  if (!fs::exists(*config.data.train_data))
    throw Error(ErrorKind::io, fmt::format("there is no `{}`", *config.data.train_data));
  configure_or_stop(device_request(arguments, config));
  TrainingSubject subject(fit_for_diagnosis(std::move(config)));
  MeasureOptions options{.batches = batches};
  if (subject.queues_work()) options.read_clocks = read_gpu_clocks;
  Examined examined{measure(subject, options), subject.circumstances()};
  if (made) examined.now.config.data.train_data.reset();
  return examined;
}

int run_diagnose(const Arguments& arguments) {
  if (arguments.has("--run") && arguments.has("--apply"))
    throw Error(ErrorKind::usage, "--apply measures again; a recorded run cannot be measured")
        .hint("leave --run out, or run the command it gives");
  const Resolved resolved = resolve_settings(arguments);
  if (arguments.has("--print-config")) {
    print(print_config(resolved));
    return 0;
  }
  catch_stop_signals();
  const Examined examined = arguments.has("--run") ? examine_run(arguments.value("--run"))
                                                   : examine_machine(arguments, resolved.config);
  const Diagnosis diagnosis = judge(examined.figures, examined.now);
  const std::string& stage = examined.now.config.training.stage;
  const std::string command = command_to_try(arguments, diagnosis.remedy,
                                             stage == resolved.config.training.stage ? "" : stage);
  const bool json = arguments.has("--json");
  if (!json) {
    print(describe(examined.figures, examined.now) + "\n");
    print(describe(diagnosis, command));
  }
  Json change;
  const bool applies = arguments.has("--apply") && !diagnosis.remedy.empty();
  if (applies) change = apply(arguments, diagnosis);
  if (json) {
    Json document = to_json(diagnosis, command, examined.figures, examined.now);
    if (arguments.has("--apply")) document["applied"] = change;
    print(document.dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (applies) {
    print(describe_change(change));
  }
  return 0;
}

}  // namespace

Command diagnose_command() {
  return {
      .name = "diagnose",
      .summary = "find what holds a training up, and what to do about it",
      .rest = "[key=value ...]",
      .details =
          "Replays one batch (the headspace), times every stage of the feed, then watches feed\n"
          "and steps together. One verdict, with the figures that prove it, what would be\n"
          "gained, and a command to try. Takes the settings of `tandem train`.\n\n"
          "  tandem diagnose --data corpus/ --batch-size 16 --num-batches 50\n"
          "  tandem diagnose --config training.yaml --apply\n"
          "  tandem diagnose --run runs/2026-11-15-120000 --json",
      .settings = read_by_train,
      .chooses_devices = true,
      .options = {{"--data", "DIR", "a dataset or an index (default: data.train_data)"},
                  {"--num-batches", "N", "batches to watch (default 50)"},
                  {"--run", "RUN", "judge this run by its recorded counters instead"},
                  {"--apply", "", "try the remedy: measure again with it, before and after"},
                  {"--json", "", "one JSON document"}},
      .run = run_diagnose};
}

}  // namespace tandem
