#include "config/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace tandem {

namespace {

std::string_view last_part(std::string_view dotted) { return dotted.substr(dotted.rfind('.') + 1); }

bool names_it(std::string_view written, std::string_view dotted) {
  const bool flat = written.find('.') == std::string_view::npos;
  return written == (flat ? last_part(dotted) : dotted);
}

// The first of the setting's names that `written` means.
std::optional<Match> match(const Setting& setting, std::string_view written) {
  if (names_it(written, setting.key)) return Match{&setting, setting.key};
  for (const std::string& alias : setting.aliases) {
    if (names_it(written, alias)) return Match{&setting, alias};
  }
  for (const std::string& old : setting.old_names) {
    if (names_it(written, old)) return Match{&setting, old, true};
  }
  return std::nullopt;
}

}  // namespace

std::vector<Match> find_names(std::string_view name) {
  std::vector<Match> out;
  for (const Setting& setting : settings()) {
    if (auto found = match(setting, name)) out.push_back(std::move(*found));
  }
  return out;
}

bool is_section(std::string_view name) {
  return std::find(sections().begin(), sections().end(), name) != sections().end();
}

std::vector<std::string> dotted_names() {
  std::vector<std::string> out;
  for (const Setting& setting : settings()) {
    out.push_back(setting.key);
    out.insert(out.end(), setting.aliases.begin(), setting.aliases.end());
    out.insert(out.end(), setting.old_names.begin(), setting.old_names.end());
  }
  return out;
}

bool is_name_prefix(std::string_view path) {
  const std::vector<std::string> all = dotted_names();
  return std::any_of(all.begin(), all.end(), [&](const std::string& name) {
    return name.size() > path.size() && name[path.size()] == '.' && name.starts_with(path);
  });
}

std::vector<std::string> nearest_settings(std::string_view name) {
  std::vector<std::string> out;
  for (const Match& elsewhere : find_names(last_part(name))) out.push_back(elsewhere.setting->key);
  if (!out.empty()) return out;

  const std::vector<std::string> dotted = dotted_names();
  const std::string_view section = name.substr(0, name.size() - last_part(name).size());
  std::vector<std::string> parts;
  for (const std::string& candidate : dotted) {
    if (section.empty() || candidate.starts_with(section))
      parts.emplace_back(section.empty() ? last_part(candidate) : candidate.substr(section.size()));
  }
  if (section.empty()) parts.insert(parts.end(), sections().begin(), sections().end());
  for (const std::string& part : nearest_names(last_part(name), parts))
    out.push_back(std::string(section) + part);
  return out.empty() ? nearest_names(name, dotted) : out;
}

std::string suggestion(std::vector<std::string> names) {
  for (std::string& name : names) name = "`" + name + "`";
  return names.empty() ? "" : " Did you mean " + join(names, " or ") + "?";
}

Error unknown_name(std::string_view name, std::string_view place) {
  return Error(ErrorKind::config, fmt::format("there is no setting `{}` ({}).{}", shown(name),
                                              place, suggestion(nearest_settings(name))))
      .hint("docs/settings.md lists every setting");
}

}  // namespace tandem
