#include "config/levels.h"

#include <fmt/format.h>

#include "config/groups.h"
#include "config/names.h"
#include "util/text.h"

namespace tandem {

std::vector<Entry> level_entries(const std::string& name) {
  if (name == basic_level) return {};
  const Source source{Source::Layer::level, "level " + name};
  return named_entries(level_group, name, source, "training.optimization_level");
}

std::string describe_level(const Resolved& resolved) {
  const std::string& name = resolved.config.training.optimization_level;
  std::vector<std::string> own, other;
  for (const Entry& entry : level_entries(name)) {
    for (const Match& match : find_names(entry.name)) {
      const Setting& setting = *match.setting;
      const Source& source = resolved.sources.at(setting.key);
      std::string value =
          fmt::format("{}={}", setting.name(), format_value(setting.get(resolved.config)));
      if (source.layer == Source::Layer::level) {
        own.push_back(std::move(value));
      } else {
        other.push_back(fmt::format("{} ({})", value, source.where));
      }
    }
  }
  if (own.empty() && other.empty())
    return fmt::format("optimization level `{}`: the defaults", name);
  std::string line = fmt::format("optimization level `{}`: {}", name,
                                 own.empty() ? "none of its values" : join(own, ", "));
  if (!other.empty()) line += "; instead of its own: " + join(other, ", ");
  return line;
}

}  // namespace tandem
