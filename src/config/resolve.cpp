#include "config/resolve.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "config/entry.h"
#include "config/groups.h"
#include "config/levels.h"
#include "config/names.h"
#include "config/overrides.h"
#include "config/resolution.h"
#include "config/yaml_source.h"
#include "tandem/error.h"

namespace tandem {

namespace {

// A section's last choice stands alone: values of an earlier one must not shine through.
std::vector<Override> chosen_groups(const std::vector<Override>& overrides) {
  std::vector<Override> out;
  for (const Override& word : overrides) {
    if (word.kind != Override::Kind::choose || word.name == preset_group) continue;
    std::erase_if(out, [&](const Override& earlier) { return earlier.name == word.name; });
    out.push_back(word);
  }
  return out;
}

class Layers {
 public:
  explicit Layers(const ResolveRequest& request) : request_(request) {
    for (const std::string& word : request.overrides) overrides_.push_back(parse_override(word));
    groups_ = chosen_groups(overrides_);
  }

  Resolved resolve(const std::string& level) {
    resolution_.apply(level_entries(level));
    apply_presets();
    apply_file();
    for (const Override& group : groups_) {
      const Source source{Source::Layer::group, group.place};
      resolution_.apply(group_entries(group.name, group.value, source, group.place));
    }
    if (request_.use_environment) apply_environment();
    apply_flags();
    apply_overrides();
    return resolution_.finish();
  }

 private:
  void apply_presets() {
    if (!request_.preset.empty()) apply_preset(request_.preset, "--preset");
    for (const Override& word : overrides_) {
      const bool chosen = word.kind == Override::Kind::choose && word.name == preset_group;
      if (chosen) apply_preset(word.value, word.place);
    }
  }

  void apply_preset(std::string name, const std::string& place) {
    if (name == "auto") {
      // What was measured here goes before what was guessed for all cards of that name.
      std::error_code ignored;
      name = std::filesystem::exists(local_preset_file(request_.gpu_name), ignored)
                 ? local_preset_for_gpu(request_.gpu_name)
                 : preset_for_gpu(request_.gpu_name);
      if (name.empty()) {
        const std::string why =
            request_.gpu_name.empty()
                ? "there is no GPU to choose one for"
                : fmt::format("none is meant for the GPU `{}`", shown(request_.gpu_name));
        resolution_.notice(fmt::format("preset `auto` changes nothing: {}", why));
        return;
      }
    }
    std::set<std::string> replaced;
    for (const Override& group : groups_) replaced.insert(group.name);
    resolution_.apply(preset_entries(name, replaced, place));
  }

  void apply_file() {
    if (request_.config_file.empty()) return;
    const Source source{Source::Layer::file, ""};
    resolution_.apply(read_settings_file(request_.config_file, {.source = source}).entries);
  }

  void apply_environment() {
    std::vector<std::string> notices;
    resolution_.apply(environment_entries(notices));
    for (const std::string& line : notices) resolution_.notice(line);
  }

  void apply_flags() {
    for (const auto& [flag, text] : request_.flags) {
      const Setting* setting = find_by_flag(flag);
      if (!setting)
        throw Error(ErrorKind::usage, fmt::format("there is no flag `{}`", shown(flag)));
      const Source source{Source::Layer::flag, flag};
      resolution_.apply({Entry{setting->key, parse_value(text), source, flag}});
    }
  }

  void apply_overrides() {
    for (const Override& word : overrides_) {
      if (word.kind == Override::Kind::remove) resolution_.remove(word.name, word.place);
      if (word.kind != Override::Kind::set) continue;
      const Source source{Source::Layer::override_, word.place};
      resolution_.apply({Entry{word.name, parse_value(word.value), source, word.place}});
    }
  }

  const ResolveRequest& request_;
  std::vector<Override> overrides_;
  std::vector<Override> groups_;
  Resolution resolution_;
};

}  // namespace

// The level is a setting like any other, and yet lies below them all: it is looked up first.
Resolved resolve(const ResolveRequest& request) {
  Resolved plain = Layers(request).resolve(basic_level);
  const std::string level = plain.config.training.optimization_level;
  return level == basic_level ? plain : Layers(request).resolve(level);
}

Config Config::from_overrides(const std::vector<std::string>& overrides) {
  return resolve({.overrides = overrides, .use_environment = false}).config;
}

Config Config::from_yaml(const std::string& path) {
  return resolve({.config_file = path, .use_environment = false}).config;
}

}  // namespace tandem
