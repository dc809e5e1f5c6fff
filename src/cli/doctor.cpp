#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "cli/session.h"
#include "device/candidates.h"
#include "device/registry.h"
#include "device/torch_errors.h"
#include "observe/checks_dataset.h"
#include "observe/checks_gpu.h"
#include "observe/checks_model.h"
#include "observe/checks_settings.h"
#include "observe/doctor_fix.h"
#include "observe/doctor_trial.h"
#include "tandem/error.h"
#include "util/log.h"

namespace tandem {
namespace {

void append(std::vector<Check>& all, std::vector<Check> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

std::vector<Check> check_machine(const GpuProbe& probe) {
  const TorchVersions torch = torch_versions();
  std::vector<Check> checks{check_build(torch.torch, torch.cuda)};
  if (probe.source != "simulated") checks.push_back(check_driver(probe, torch.cuda));
  append(checks, check_gpus(probe));
  if (probe.source == "nvml")
    for (const GpuHealth& gpu : read_gpu_health(probe)) append(checks, check_gpu_health(gpu));
  append(checks, check_peers(probe));
  append(checks, {check_cores(), check_host_memory(), check_pinned_memory(), check_shared_memory(),
                  check_open_files(), check_disk(".")});
  return checks;
}

std::vector<Check> check_room(const Config& config) {
  const std::string& wanted = config.paths.checkpoint_dir;
  const std::string folder = wanted.empty() ? "runs" : wanted;
  try {
    return {check_checkpoint_space(folder, checkpoint_need(config)),
            check_storage_kind("runs' disk", storage_of(existing_folder(folder)))};
  } catch (const Error& error) {
    return {{.verdict = Verdict::warn,
             .name = "room to save",
             .found = fmt::format("not known: {}", error.what()),
             .advice = error.hint()}};
  }
}

// --fix is recommended where it has something to offer.
std::string advice_for(const std::string& file, const SettingsMachine& machine) {
  try {
    if (!plan_config_fix(file, machine).diff.empty())
      return fmt::format("tandem doctor --fix --config {} mends it", file);
  } catch (const Error&) {
    // It says the same as the check does.
  }
  return std::filesystem::exists(file) ? "mend it by hand" : "";
}

// The settings a run would have; the defaults where the file does not load, which is a FAIL.
Config check_config(const std::string& file, const SettingsMachine& machine,
                    std::vector<Check>& checks) {
  if (file.empty()) return {};
  try {
    const Resolved settings = resolve({.config_file = file, .use_environment = false});
    checks.push_back({.name = "config", .found = fmt::format("`{}` loads", file)});
    for (const std::string& notice : settings.notices)
      checks.push_back({.name = "config", .found = notice});
    for (const auto& list :
         {check_speed_settings(settings.config, machine), check_contradictions(settings, machine)})
      for (const SettingCheck& one : list) checks.push_back(one.check);
    append(checks, check_room(settings.config));
    return settings.config;
  } catch (const Error& error) {
    const std::string advice = advice_for(file, machine);
    const char* between = error.hint().empty() || advice.empty() ? "" : "; ";
    checks.push_back({.verdict = Verdict::fail,
                      .name = "config",
                      .found = error.what(),
                      .advice = error.hint() + between + advice});
    return {};
  }
}

std::vector<Check> examine(const Arguments& arguments, const std::string& config_file) {
  const GpuProbe probe = find_candidates(device_request(arguments)).probe;
  std::vector<Check> checks = check_machine(probe);
  const SettingsMachine machine{.cores = std::thread::hardware_concurrency(), .gpus = probe.gpus};
  const Config config = check_config(config_file, machine, checks);
  const DatasetLimits limits{.sample_rate = config.data.sample_rate,
                             .warn_bad_share = config.data.warn_bad_share,
                             .max_bad_share = config.data.max_bad_share,
                             .native = config.data.use_native_loading};
  if (arguments.has("--data")) {
    append(checks, check_data(arguments.value("--data"), false, limits));
  } else if (config.data.train_data) {
    append(checks, check_data(*config.data.train_data, config.training.stage == "bytes", limits));
  }
  const std::string model = arguments.value("--model", config.model.pretrained.value_or(""));
  if (!model.empty()) append(checks, check_model_folder(model));
  return checks;
}

std::vector<Check> run_trial(const Arguments& arguments) {
  configure_or_stop(device_request(arguments));
  const Strategy strategy = setup_gpu_strategy(false);
  LogicalDevice& device = DeviceRegistry::get().find(strategy.replicas.front());
  const bool on_gpu = device.kind() == DeviceKind::cuda;
  return check_steps(try_steps(device, {.model_size = arguments.value("--model-size", "tiny"),
                                        .precision = on_gpu ? "bf16" : "fp32",
                                        .steps = on_gpu ? 20 : 4}));
}

struct Mended {
  Check check;
  std::string diff;
};

Mended mend(const std::string& file, const GpuProbe& probe) {
  const ConfigFix fix =
      plan_config_fix(file, {.cores = std::thread::hardware_concurrency(), .gpus = probe.gpus});
  Mended mended{.check = {.name = "fix"}};
  if (fix.diff.empty()) {
    mended.check.found = fmt::format("nothing to change in `{}`", file);
    return mended;
  }
  const std::string backup = write_config_fix(file, fix);
  for (const std::string& reason : fix.reasons) log_info("{}", reason);
  mended.check.found = fmt::format("`{}` changed, the old text is in `{}`", file, backup);
  mended.diff = fix.diff;
  return mended;
}

std::string fixed_file(const Arguments& arguments) {
  if (arguments.has("--config") || !arguments.has("--fix")) return arguments.value("--config");
  if (std::filesystem::exists("config.yaml")) return "config.yaml";
  throw Error(ErrorKind::usage,
              "--fix changes a settings file, but none is named and there is no config.yaml here")
      .hint("tandem doctor --fix --config FILE");
}

int tell(const std::vector<Check>& checks, const std::string& diff, bool json) {
  int failures = 0, warnings = 0;
  size_t widest = 10;
  for (const Check& check : checks) widest = std::max(widest, check.name.size());
  std::string text = diff.empty() ? "" : diff + "\n";
  auto document = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    failures += check.verdict == Verdict::fail;
    warnings += check.verdict == Verdict::warn;
    text +=
        fmt::format("{}  {:<{}} {}\n", to_string(check.verdict), check.name, widest, check.found);
    if (!check.advice.empty()) text += fmt::format("{:<{}}-> {}\n", "", widest + 7, check.advice);
    document.push_back({{"verdict", to_string(check.verdict)},
                        {"name", check.name},
                        {"found", check.found},
                        {"advice", check.advice}});
    if (check.name == "fix") document.back()["diff"] = diff;
  }
  text += fmt::format("{} failed, {} to look at", failures, warnings);
  using Json = nlohmann::ordered_json;
  print(json ? document.dump(2, ' ', false, Json::error_handler_t::replace) : text);
  return failures > 0 ? exit_code(ErrorKind::device) : 0;
}

int run_doctor(const Arguments& arguments) {
  const bool json = arguments.has("--json");
  if (arguments.has("--test") && arguments.has("--fix"))
    throw Error(ErrorKind::usage, "--test and --fix are two questions: ask one at a time");
  if (arguments.has("--model-size") && !arguments.has("--test"))
    throw Error(ErrorKind::usage, "--model-size is the size of the steps that --test runs")
        .hint("tandem doctor --test --model-size small");
  if (arguments.has("--test")) return tell(run_trial(arguments), "", json);
  const std::string file = fixed_file(arguments);
  if (!arguments.has("--fix")) return tell(examine(arguments, file), "", json);
  const Mended mended = mend(file, find_candidates(device_request(arguments)).probe);
  std::vector<Check> checks{mended.check};
  append(checks, examine(arguments, file));
  return tell(checks, mended.diff, json);
}

}  // namespace

Command doctor_command() {
  return {
      .name = "doctor",
      .summary = "check machine, settings, data and model before a run",
      .rest = "",
      .details =
          "Each line is PASS, WARN, FAIL or SKIP with what was found and what to do. Exit code 1 "
          "when\nanything fails. Nothing is changed, except with --fix the settings file.\n\n"
          "  tandem doctor --config config.yaml --data LJSpeech-1.1 --model XTTS-v2\n"
          "  tandem doctor --fix --config config.yaml\n"
          "  tandem doctor --test",
      .settings = 0,
      .chooses_devices = true,
      .options = {{"--json", "", "one JSON document"},
                  {"--config", "FILE", "also check this settings file"},
                  {"--data", "DIR", "also check this dataset and read some of it cold"},
                  {"--model", "DIR", "also check this XTTS or MusicGen folder and its hashes"},
                  {"--fix", "",
                   "mend the settings file (--config, or config.yaml here); a backup is kept, "
                   "a diff shown"},
                  {"--test", "", "run real steps eager, fused and captured, and compare"},
                  {"--model-size", "SIZE", "of --test: tiny (default), small, normal or big"}},
      .run = run_doctor};
}

}  // namespace tandem
