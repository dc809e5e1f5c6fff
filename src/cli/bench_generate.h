#pragma once

#include "cli/command.h"
#include "tandem/config.h"

namespace tandem {

// `tandem bench generate`.
int bench_generate_command(const Arguments& arguments, const Config& config);

}  // namespace tandem
