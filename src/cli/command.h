// The program is a table of commands, one file each. A command declares its options; parsing, help
// and completion come from that declaration and from the table of settings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct Option {
  std::string flag;   // "--json"
  std::string value;  // name of its value for the help text; empty: a switch
  std::string help;
  std::string short_flag = "";  // "-q"
  bool repeats = false;         // one word each time, as often as wanted; all are in `several`
};

// What the user typed, after the command's name.
struct Arguments {
  std::string command;
  std::map<std::string, std::string> options;               // "--json" -> "true"
  std::map<std::string, std::vector<std::string>> several;  // of options that take or have several
  std::vector<std::pair<std::string, std::string>> settings;  // flags of settings, in order
  std::vector<std::string> rest;                              // `key=value` and other words
  bool has(const std::string& flag) const { return options.count(flag) != 0; }
  std::string value(const std::string& flag, const std::string& otherwise = "") const;
  std::optional<int> integer(const std::string& flag) const;  // throws Error(usage) when it is none
};

struct Command {
  const char* name;
  const char* summary;   // one line, for the list
  const char* rest;      // what words it takes beside options, for the usage line; "" : none
  const char* details;   // paragraphs for its help
  uint32_t settings;     // which settings' flags it takes (a Reader bit), 0: none
  bool chooses_devices;  // takes --simulate-gpus and --split-gpu
  std::vector<Option> options;
  int (*run)(const Arguments&);
};

const std::vector<Command>& commands();
// Throws Error(usage) with the nearest name.
const Command& command_named(const std::string& name);

// The options every command takes, and those of commands that choose devices or read settings.
std::vector<Option> all_options(const Command& command);

// Throws Error(usage) with the nearest name for an unknown option.
Arguments parse_arguments(const Command& command, const std::vector<std::string>& words);

std::string program_help();
std::string command_help(const Command& command);
std::string bash_completion();

Command train_command();
Command monitor_command();
Command diagnose_command();
Command devices_command();
Command doctor_command();
Command config_command();
Command prepare_command();
Command bench_command();
Command tune_command();
Command synthesize_command();
Command generate_command();
Command verify_command();
Command voice_command();
Command convert_command();
Command inspect_command();
Command trace_command();
Command profile_command();
Command version_command();
Command help_command();
Command completion_command();

}  // namespace tandem
