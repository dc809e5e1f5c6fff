#include "config/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "config/config_dir.h"
#include "config/names.h"
#include "config/yaml_source.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

namespace fs = std::filesystem;

namespace {

constexpr const char* local_folder = "local";

bool is_local(const std::string& group, const std::string& choice) {
  return group == preset_group && choice.starts_with(std::string(local_folder) + "/");
}

void add_choices(const fs::path& folder, const fs::path& named_from,
                 std::vector<std::string>& out) {
  std::error_code missing;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(folder, missing)) {
    if (file.path().extension() == ".yaml")
      out.push_back(
          file.path().lexically_relative(named_from).replace_extension().generic_string());
  }
}

// A choice stays inside its group's folder.
bool is_safe(const std::string& choice) {
  const std::vector<std::string> parts = split(choice, '/');
  return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos;
  });
}

fs::path choice_file(const std::string& group, const std::string& choice,
                     const std::string& place) {
  if (!is_safe(choice)) {
    throw Error(
        ErrorKind::config,
        fmt::format("`{}` is no choice for `{}` ({}): expected a name such as `a/b`, without "
                    "`..` and not a path from the root",
                    shown(choice), group, place));
  }
  const std::vector<std::string> all = group_choices(group);
  if (std::find(all.begin(), all.end(), choice) != all.end())
    return (is_local(group, choice) ? config_dir() : config_dir() / group) / (choice + ".yaml");
  if (all.empty()) {
    throw Error(ErrorKind::config,
                fmt::format("`{}` has no named sets of values ({}); expected `{}.name=value`",
                            group, place, group));
  }
  throw Error(ErrorKind::config,
              fmt::format("there is no `{}` called `{}` ({}).{} There are: {}", group,
                          shown(choice), place, did_you_mean(choice, all), join(all, ", ")));
}

}  // namespace

std::vector<std::string> group_choices(const std::string& group) {
  const fs::path folder = config_dir() / group;
  std::vector<std::string> out;
  add_choices(folder, folder, out);
  if (group == preset_group) add_choices(config_dir() / local_folder, config_dir(), out);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Entry> group_entries(const std::string& section, const std::string& choice,
                                 const Source& source, const std::string& place) {
  const fs::path file = choice_file(section, choice, place);
  return read_settings_file(file, {.section = section, .source = source}).entries;
}

std::vector<Entry> named_entries(const std::string& folder, const std::string& name,
                                 const Source& source, const std::string& place) {
  return read_settings_file(choice_file(folder, name, place), {.source = source}).entries;
}

std::vector<Entry> preset_entries(const std::string& name, const std::set<std::string>& replaced,
                                  const std::string& place) {
  const fs::path file = choice_file(preset_group, name, place);
  const Source source{Source::Layer::preset, "preset " + name};
  YamlSettings own = read_settings_file(file, {.source = source, .with_defaults = true});
  std::vector<Entry> out;
  for (const DefaultChoice& chosen : own.defaults) {
    if (!is_section(chosen.group)) {
      throw Error(
          ErrorKind::config,
          fmt::format("`{}` is no section with named sets of values ({}).{}", shown(chosen.group),
                      chosen.place, did_you_mean(chosen.group, sections())));
    }
    if (replaced.contains(chosen.group)) continue;
    const auto entries = group_entries(chosen.group, chosen.choice, source, chosen.place);
    out.insert(out.end(), entries.begin(), entries.end());
  }
  out.insert(out.end(), own.entries.begin(), own.entries.end());
  return out;
}

std::string preset_for_gpu(std::string_view gpu_name) {
  std::string words = lower(gpu_name);
  std::replace(words.begin(), words.end(), '-', ' ');
  const std::vector<std::string> parts = split(words, ' ');
  const auto has = [&](const char* word) {
    return std::find(parts.begin(), parts.end(), word) != parts.end();
  };
  // A laptop's chip and a slice of a GPU carry the big card's name, not its memory.
  if (has("laptop") || has("max") || has("mig")) return "";
  for (const char* model : {"4090", "3090", "3080", "3060"}) {
    if (has("rtx") && has(model)) return std::string("rtx") + model;
  }
  // Whole words only: a GH200 is no H200.
  for (const char* model : {"a100", "h100", "h200"}) {
    if (has(model)) return model;
  }
  return "";
}

std::string local_preset_for_gpu(std::string_view gpu_name) {
  std::string name;
  for (const char c : lower(gpu_name)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  if (name.starts_with("nvidia-")) name.erase(0, 7);
  return std::string(local_folder) + "/" + (name.empty() ? "cpu" : name);
}

fs::path local_preset_file(std::string_view gpu_name) {
  return config_dir() / (local_preset_for_gpu(gpu_name) + ".yaml");
}

}  // namespace tandem
