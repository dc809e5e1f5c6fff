#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/session.h"
#include "config/resolve.h"
#include "device/candidates.h"
#include "device/torch_errors.h"
#include "observe/checks.h"
#include "tandem/error.h"
#include "util/log.h"

namespace tandem {
namespace {

Check check_config(const std::string& file) {
  Check check{.name = "config", .found = fmt::format("`{}` loads", file)};
  try {
    resolve({.config_file = file, .use_environment = false});
  } catch (const Error& error) {
    check = {
        .verdict = Verdict::fail, .name = "config", .found = error.what(), .advice = error.hint()};
  }
  return check;
}

std::vector<Check> examine(const Arguments& arguments) {
  const GpuProbe probe = find_candidates(device_request(arguments)).probe;
  const TorchVersions torch = torch_versions();
  std::vector<Check> checks{check_build(torch.torch, torch.cuda)};
  if (probe.source != "simulated") checks.push_back(check_driver(probe, torch.cuda));
  for (const Check& check : check_gpus(probe)) checks.push_back(check);
  checks.push_back(check_cores());
  checks.push_back(check_host_memory());
  checks.push_back(check_disk("."));
  checks.push_back(check_open_files());
  if (arguments.has("--config")) checks.push_back(check_config(arguments.value("--config")));
  return checks;
}

int run_doctor(const Arguments& arguments) {
  int failures = 0, warnings = 0;
  std::string text;
  auto document = nlohmann::ordered_json::array();
  for (const Check& check : examine(arguments)) {
    failures += check.verdict == Verdict::fail;
    warnings += check.verdict == Verdict::warn;
    text += fmt::format("{}  {:<10} {}\n", to_string(check.verdict), check.name, check.found);
    if (!check.advice.empty()) text += fmt::format("{:<17}-> {}\n", "", check.advice);
    document.push_back({{"verdict", to_string(check.verdict)},
                        {"name", check.name},
                        {"found", check.found},
                        {"advice", check.advice}});
  }
  text += fmt::format("{} failed, {} to look at\n", failures, warnings);
  print(arguments.has("--json") ? document.dump(2) : text);
  return failures > 0 ? exit_code(ErrorKind::device) : 0;
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "check this machine before a run",
          .rest = "",
          .details =
              "Each line is PASS, WARN or FAIL with what to do. Exit code 1 when anything fails.",
          .settings = 0,
          .chooses_devices = true,
          .options = {{"--json", "", "one JSON document"},
                      {"--config", "FILE", "also check this settings file"}},
          .run = run_doctor};
}

}  // namespace tandem
