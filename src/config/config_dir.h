// Where the folder configs/ with presets and groups is.
#pragma once

#include <filesystem>

namespace tandem {

// $TANDEM_CONFIG_DIR; else beside the program: ../../configs (build/bin), ../configs (dist/bin),
// ../share/tandem/configs (installed); else ./configs. Throws Error(config) when there is none.
std::filesystem::path config_dir();

}  // namespace tandem
