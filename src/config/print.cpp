// The configuration for a run's folder, and the table for docs/settings.md.
#include <fmt/format.h>

#include "config/check.h"
#include "config/resolve.h"
#include "util/text.h"

namespace tandem {

std::vector<ChangedSetting> changed_settings(const Resolved& resolved) {
  std::vector<ChangedSetting> changed;
  for (const Setting& setting : settings()) {
    const auto source = resolved.sources.find(setting.key);
    if (source == resolved.sources.end() || source->second.layer == Source::Layer::standard)
      continue;
    changed.push_back(
        {setting.key, format_value(setting.get(resolved.config)), shown(source->second.where)});
  }
  return changed;
}

std::string print_config(const Resolved& resolved) {
  std::string out;
  std::string section;
  for (const Setting& setting : settings()) {
    if (setting.section() != section) {
      section = setting.section();
      out += fmt::format("{}{}:\n", out.empty() ? "" : "\n", section);
    }
    const auto source = resolved.sources.find(setting.key);
    const std::string where = source == resolved.sources.end() ? "default" : source->second.where;
    out += fmt::format("  {}: {}  # {}\n", setting.name(),
                       format_value(setting.get(resolved.config)), shown(where));
  }
  return out;
}

namespace {

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

std::string code_list(std::vector<std::string> parts) {
  for (std::string& part : parts) part = code(part);
  return join(parts, ", ");
}

std::string row_of(const Setting& setting) {
  std::vector<std::string> names = setting.aliases;
  names.insert(names.end(), setting.old_names.begin(), setting.old_names.end());
  const std::string readers = reader_names(setting.readers);
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", code(setting.key),
                     expected(setting), code(format_value(setting.default_value)),
                     code(setting.flag), code(setting.env), code_list(names),
                     readers.empty() ? "nothing yet" : readers, setting.help);
}

}  // namespace

std::string settings_markdown() {
  std::string out =
      "# Settings\n\n"
      "Made from the table in `src/config`. Order, later wins: default, level, preset, file, "
      "group,\n"
      "environment, flag, `key=value`. A key may be written without its section; a name that two\n"
      "sections have then sets both.\n";
  std::string section;
  for (const Setting& setting : settings()) {
    if (setting.section() != section) {
      section = setting.section();
      out += fmt::format("\n## {}\n\n", section);
      out += "| key | value | default | flag | environment | other names | read by | meaning |\n";
      out += "|---|---|---|---|---|---|---|---|\n";
    }
    out += row_of(setting);
  }
  return out;
}

}  // namespace tandem
