#include "cli/bench_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "cli/session.h"
#include "config/names.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

// A parameter with several values, and how a job is given one of them.
struct Axis {
  std::string name;
  std::vector<std::string> values;
  std::function<void(Arguments&, const std::string&)> give;
};

bool may_hold_commas(const Setting& setting) {
  return setting.type == Type::text && setting.choices.empty();
}

std::vector<std::string> values_of(const std::string& name, const std::string& text) {
  std::vector<std::string> values = split(text, ',');
  for (const std::string& value : values) {
    if (value.empty())
      throw Error(ErrorKind::usage,
                  fmt::format("{} is `{}`; expected values between its commas", name, text));
  }
  return values;
}

void add_options(const Arguments& arguments, std::vector<Axis>& axes) {
  for (const BenchOption& entry : bench_options()) {
    const std::string flag = entry.option.flag;
    if (!entry.sweeps || !arguments.has(flag)) continue;
    const std::string text = arguments.value(flag);
    if (text.find(',') == std::string::npos) continue;
    if (flag == "--data" && std::filesystem::exists(text)) continue;
    axes.push_back({flag, values_of(flag, text), [flag](Arguments& job, const std::string& value) {
                      job.options[flag] = value;
                    }});
  }
}

void add_flags(const Arguments& arguments, std::vector<Axis>& axes) {
  for (size_t i = 0; i < arguments.settings.size(); ++i) {
    const auto& [flag, text] = arguments.settings[i];
    const Setting* setting = find_by_flag(flag);
    if (text.find(',') == std::string::npos || (setting && may_hold_commas(*setting))) continue;
    axes.push_back({flag, values_of(flag, text), [i](Arguments& job, const std::string& value) {
                      job.settings[i].second = value;
                    }});
  }
}

// `key=a,b`, also of groups, whose names hold no commas.
void add_words(const Arguments& arguments, std::vector<Axis>& axes) {
  for (size_t i = 0; i < arguments.rest.size(); ++i) {
    const std::string& word = arguments.rest[i];
    const size_t equals = word.find('=');
    if (equals == std::string::npos || word.find(',', equals) == std::string::npos) continue;
    const std::string key = word.substr(0, equals);
    const auto matches = find_names(key.substr(std::min(key.find_first_not_of('+'), key.size())));
    const bool whole = std::ranges::any_of(
        matches, [](const Match& match) { return may_hold_commas(*match.setting); });
    if (whole) continue;
    axes.push_back(
        {key, values_of(key, word.substr(equals + 1)),
         [i, key](Arguments& job, const std::string& value) { job.rest[i] = key + "=" + value; }});
  }
}

bool same_devices(const DeviceRequest& a, const DeviceRequest& b) {
  return a.data_gpu == b.data_gpu && a.model_gpu == b.model_gpu &&
         a.visible_gpus == b.visible_gpus && a.multi_gpu == b.multi_gpu &&
         a.memory_isolation == b.memory_isolation && a.data_gpu_memory == b.data_gpu_memory &&
         a.model_gpu_memory == b.model_gpu_memory;
}

std::string names_of(const std::vector<Axis>& axes) {
  std::vector<std::string> names;
  for (const Axis& axis : axes) names.push_back("`" + axis.name + "`");
  return join(names, ", ");
}

}  // namespace

std::vector<BenchJob> bench_jobs(const Bench& bench, const Arguments& arguments) {
  std::vector<Axis> axes, settings;
  add_options(arguments, axes);
  add_flags(arguments, settings);
  add_words(arguments, settings);
  if (!settings.empty() && !bench.reads_settings) {
    throw Error(ErrorKind::usage, fmt::format("`tandem bench {}` does not read the setting {}",
                                              bench.name, names_of(settings)))
        .hint("tandem bench --list shows the options it takes");
  }
  axes.insert(axes.end(), settings.begin(), settings.end());
  std::vector<BenchJob> jobs{{.arguments = arguments, .config = {}}};
  for (const Axis& axis : axes) {
    std::vector<BenchJob> more;
    for (const BenchJob& job : jobs) {
      for (const std::string& value : axis.values) {
        more.push_back(job);
        axis.give(more.back().arguments, value);
        more.back().parameters.emplace_back(axis.name, value);
      }
    }
    jobs = std::move(more);
    if (jobs.size() > 1000)
      throw Error(ErrorKind::usage, "these values make more than 1000 combinations");
  }
  for (BenchJob& job : jobs) {
    job.config = resolve_settings(job.arguments).config;
    bench.check(job);
    if (!same_devices(device_request(jobs.front().arguments, jobs.front().config),
                      device_request(job.arguments, job.config))) {
      throw Error(ErrorKind::usage,
                  "devices are chosen once a run and cannot change between its combinations")
          .hint("run `tandem bench` once for each choice of devices");
    }
  }
  return jobs;
}

}  // namespace tandem
