// The one table of settings. A row binds a member of Config to its key, its limits, its flag, its
// other names, its environment variable and its help; the command line, the YAML reader, the
// printed configuration and docs/settings.md are all made from it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/value.h"
#include "tandem/config.h"

namespace tandem {

enum class Type { boolean, integer, number, text };

// The commands that may read a setting, as bits of Setting::readers.
enum Reader : uint32_t {
  read_by_train = 1u << 0,
  read_by_generate = 1u << 1,
  read_by_synthesize = 1u << 2,
  read_by_prepare = 1u << 3,
  read_by_diagnose = 1u << 4,
  read_by_bench = 1u << 5,
};

struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is out

  bool holds(double number) const;
};

struct Setting {
  std::string key;  // "training.multi_gpu"
  Type type = Type::text;
  bool nullable = false;
  bool auto_is_null = false;  // the word `auto` means null
  Value default_value;
  std::optional<Range> range;
  std::vector<std::string> choices;
  std::string help;
  std::string flag;                    // "--multi-gpu" or ""
  std::vector<std::string> aliases;    // other names, dotted, as good as the key
  std::vector<std::string> old_names;  // other names, dotted, that bring a notice
  std::string env;                     // "TANDEM_TRAINING_MULTI_GPU"
  uint32_t readers = 0;                // at least one command

  std::function<Value(const Config&)> get;
  // The value must have passed `checked_value` (config/check.h).
  std::function<void(Config&, const Value&)> set;

  std::string section() const;  // "training"
  std::string name() const;     // "multi_gpu"
};

// In the order of Config's sections and members.
const std::vector<Setting>& settings();
// Sections in their order: "model", "data", …
const std::vector<std::string>& sections();

const Setting* find_by_key(std::string_view key);
const Setting* find_by_flag(std::string_view flag);

// "training.multi_gpu" -> "TANDEM_TRAINING_MULTI_GPU"
std::string environment_name(std::string_view key);
// "train, generate"; "" for no reader.
std::string reader_names(uint32_t readers);

}  // namespace tandem
