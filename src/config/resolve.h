// From all the places where a setting can be given to one Config.
//
// Order, later wins: defaults, the optimization level, presets, the file, groups
// (`data=tta/musiccaps_captions`), the environment, flags, `key=value`. Each layer sets only the
// keys it names.
//
// One setting, two names: when the file, the environment, flags and overrides give one setting
// different values under different names (`--buffer-size 50 prefetch_buffer_size=16`), nobody can
// know which was meant, and resolve throws. The same name in two layers is ordinary precedence.
// Levels, presets and groups are named sets of values, not values somebody wrote down for this run:
// they never take part in such a quarrel.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tandem/config.h"

namespace tandem {

struct Source {
  enum class Layer { standard, level, preset, file, group, environment, flag, override_ };
  Layer layer = Layer::standard;
  std::string where = "default";  // "preset rtx4090", "config.yaml:12", "--batch-size", "epochs=3"
};

struct ResolveRequest {
  std::string preset = "";                                      // name, `auto`, or none
  std::string config_file = "";                                 // path, or none
  std::vector<std::pair<std::string, std::string>> flags = {};  // "--batch-size" -> "32"
  std::vector<std::string> overrides = {};  // `key=value`, `+key=value`, `~key`, `group=choice`
  bool use_environment = true;
  std::string gpu_name = "";  // of the first GPU, for preset `auto`; none: no GPU
};

struct Resolved {
  Config config;
  std::map<std::string, Source> sources;  // every key
  std::vector<std::string> notices;       // lines for the log, each once
};

// Throws Error(config), or Error(io) when a file cannot be read.
Resolved resolve(const ResolveRequest& request);

// What is not the default, in the table's order.
struct ChangedSetting {
  std::string key, value, where;
};
std::vector<ChangedSetting> changed_settings(const Resolved& resolved);

// YAML of every section, each value with a `# where` comment. Loads again to the same Config.
std::string print_config(const Resolved& resolved);

// The text of docs/settings.md.
std::string settings_markdown();

}  // namespace tandem
