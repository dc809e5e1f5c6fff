#pragma once

#include "cli/command.h"
#include "tandem/config.h"

namespace tandem {

// `tandem bench synthesize`.
int bench_synthesize_command(const Arguments& arguments, const Config& config);

}  // namespace tandem
