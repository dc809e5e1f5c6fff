#include "cli/command.h"
#include "config/schema.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      train_command(),   synthesize_command(), generate_command(), verify_command(),
      voice_command(),   prepare_command(),    convert_command(),  inspect_command(),
      trace_command(),   profile_command(),    bench_command(),    tune_command(),
      monitor_command(), diagnose_command(),   devices_command(),  doctor_command(),
      config_command(),  help_command(),       version_command(),  completion_command()};
  return table;
}

const Command& command_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (name == command.name) return command;
    names.emplace_back(command.name);
  }
  throw Error(ErrorKind::usage, "there is no command `" + name + "`." + did_you_mean(name, names))
      .hint("tandem help");
}

std::vector<Option> all_options(const Command& command) {
  std::vector<Option> options = command.options;
  if (command.chooses_devices) {
    options.push_back(
        {"--simulate-gpus", "N",
         "N simulated GPUs on the CPU instead of real ones (also TANDEM_SIMULATE_GPUS)"});
    options.push_back({"--split-gpu", "N", "N logical devices of one real GPU"});
  }
  if (command.settings) {
    options.push_back({"--config", "FILE", "settings from a YAML file"});
    options.push_back({"--preset", "NAME", "a named set of settings, or `auto` for the GPU found"});
    options.push_back(
        {"--print-config", "", "print every setting with where it came from, and stop"});
  }
  options.push_back({"--log-file", "FILE", "also write the log there"});
  options.push_back({"--json-log", "", "log lines as JSON objects"});
  options.push_back({"--quiet", "", "warnings and errors only", "-q"});
  options.push_back({"--verbose", "", "more detail", "-v"});
  options.push_back({"--help", "", "this help", "-h"});
  return options;
}

std::string Arguments::value(const std::string& flag, const std::string& otherwise) const {
  const auto found = options.find(flag);
  return found == options.end() ? otherwise : found->second;
}

std::optional<int> Arguments::integer(const std::string& flag) const {
  if (!has(flag)) return std::nullopt;
  const auto number = parse_int(value(flag));
  if (!number || *number < INT32_MIN || *number > INT32_MAX) {
    throw Error(ErrorKind::usage, flag + " is `" + value(flag) + "`; expected a whole number");
  }
  return static_cast<int>(*number);
}

}  // namespace tandem
