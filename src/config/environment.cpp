#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "config/entry.h"
#include "config/names.h"
#include "util/text.h"

namespace tandem {

namespace {

// TANDEM_… -> the dotted name that it sets.
std::map<std::string, std::string> variable_names() {
  std::map<std::string, std::string> out;
  for (const std::string& name : dotted_names()) out.emplace(environment_name(name), name);
  for (const Setting& setting : settings()) out.insert_or_assign(setting.env, setting.key);
  return out;
}

// "TANDEM_TRAINING_MULTI_GP" -> "training.multi_gp"; "" when no section begins like that.
std::string dotted_name(const std::string& variable) {
  for (const std::string& section : sections()) {
    const std::string prefix = environment_name(section) + "_";
    if (variable.starts_with(prefix)) return section + "." + lower(variable.substr(prefix.size()));
  }
  return "";
}

std::string unread(const std::string& variable, const std::string& dotted) {
  std::vector<std::string> near = nearest_settings(dotted);
  for (std::string& name : near) name = environment_name(name);
  return fmt::format("the variable `{}` names no setting and was not read.{}", variable,
                     suggestion(near));
}

}  // namespace

std::vector<Entry> environment_entries(std::vector<std::string>& notices) {
  const std::map<std::string, std::string> known = variable_names();
  std::vector<Entry> out;
  for (char** pair = environ; pair && *pair; ++pair) {
    const std::string text = *pair;
    const size_t equals = text.find('=');
    const std::string variable = text.substr(0, equals);
    // An empty variable counts as unset, as everywhere in a shell.
    if (equals == std::string::npos || equals + 1 == text.size()) continue;
    if (const auto found = known.find(variable); found != known.end()) {
      const Source source{Source::Layer::environment, variable};
      out.push_back({found->second, parse_value(text.substr(equals + 1)), source, variable});
    } else if (const std::string dotted = dotted_name(variable); !dotted.empty()) {
      notices.push_back(unread(variable, dotted));
    }
  }
  // The order of the environment is an accident.
  std::sort(out.begin(), out.end(),
            [](const Entry& a, const Entry& b) { return a.source.where < b.source.where; });
  std::sort(notices.begin(), notices.end());
  return out;
}

}  // namespace tandem
