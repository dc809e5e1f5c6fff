#pragma once

#include "cli/command.h"
#include "tandem/config.h"

namespace tandem {

// `tandem bench train`.
int bench_train_command(const Arguments& arguments, const Config& config);

}  // namespace tandem
