#include "config/config_dir.h"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "tandem/error.h"

namespace tandem {

namespace fs = std::filesystem;

fs::path config_dir() {
  std::error_code ignored;
  if (const char* chosen = std::getenv("TANDEM_CONFIG_DIR"); chosen && *chosen) {
    if (fs::is_directory(chosen, ignored)) return chosen;
    throw Error(ErrorKind::config,
                fmt::format("`TANDEM_CONFIG_DIR` is `{}`, which is not a folder", chosen));
  }
  std::vector<fs::path> candidates;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (const char* relative : {"../configs", "../../configs", "../share/tandem/configs"}) {
    if (!program.empty())
      candidates.push_back((program.parent_path() / relative).lexically_normal());
  }
  candidates.emplace_back("configs");
  for (const fs::path& candidate : candidates) {
    if (fs::is_directory(candidate, ignored)) return candidate;
  }
  throw Error(ErrorKind::config,
              "the folder `configs` with presets and groups was found neither beside the program "
              "nor here")
      .hint("set TANDEM_CONFIG_DIR to that folder");
}

}  // namespace tandem
