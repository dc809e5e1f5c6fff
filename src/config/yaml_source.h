// Settings files: YAML with sections as maps, flat names at the top, or dotted names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/entry.h"

namespace tandem {

// One line of a preset's `defaults:` list: `- data: tta/musiccaps_captions`.
struct DefaultChoice {
  std::string group;
  std::string choice;
  std::string place;
};

struct YamlOptions {
  std::string section = "";    // the names in the file belong to this section; "": to none
  Source source = {};          // where empty: the file and line
  bool with_defaults = false;  // a `defaults:` list may be there
};

struct YamlSettings {
  std::vector<Entry> entries;
  std::vector<DefaultChoice> defaults;
};

// Throws Error(io) when the file cannot be read; Error(config) when it is no YAML map, names a key
// twice, or names what is no setting. Values are not checked here.
YamlSettings read_settings_file(const std::filesystem::path& path, const YamlOptions& options);

}  // namespace tandem
