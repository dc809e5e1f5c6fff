// `tandem doctor --fix`: a settings file mended line by line. What no setting knows is renamed
// where one name is near, else made a comment; what does not fit its setting gets the nearest
// choice or the default; what costs speed gets a better value. Everything else stays as it was
// written.
#pragma once

#include <string>
#include <vector>

#include "observe/checks_settings.h"

namespace tandem {

struct ConfigFix {
  std::string before, after;         // texts of the file
  std::vector<std::string> reasons;  // "line 3: …", in the order of the lines
  std::string diff;                  // unified; empty: nothing to change
};

// Changes nothing on the disk but a temporary file. Throws Error(io) when the file cannot be read,
// Error(config) when what is wrong cannot be mended line by line: then nothing is.
ConfigFix plan_config_fix(const std::string& file, const SettingsMachine& machine);

// Keeps the old text as `<file>.bak-<time>` beside it, with the same permissions, and puts the new
// one in place at once. Returns the backup's path. Throws Error(io), for a file that may not be
// written too.
std::string write_config_fix(const std::string& file, const ConfigFix& fix);

}  // namespace tandem
