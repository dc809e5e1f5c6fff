// From what a user writes to settings: dotted keys, flat names, other names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "tandem/error.h"

namespace tandem {

// A setting that a name reaches. `name` is the key, or the alias when one was used: the key, its
// last part, its flag and its variable all count as one name of the setting.
struct Match {
  const Setting* setting = nullptr;
  std::string name;
  bool old = false;
};

// "training.multi_gpu" matches that key or alias only; "seed" matches every section that has it.
// Empty: no such setting.
std::vector<Match> find_names(std::string_view name);

bool is_section(std::string_view name);
// Whether some key or alias begins with `path` and a dot: "model", "model.model".
bool is_name_prefix(std::string_view path);

// Keys, aliases and old names with their sections.
std::vector<std::string> dotted_names();

// What a name that no setting has was probably meant to be, best first: the same last part in
// another section, else something near in the same section, else something near anywhere.
std::vector<std::string> nearest_settings(std::string_view name);

// " Did you mean `a` or `b`?", or "" for none.
std::string suggestion(std::vector<std::string> names);

// The sentence for a name that no setting has, with the nearest ones.
Error unknown_name(std::string_view name, std::string_view place);

}  // namespace tandem
