// One measurement of `tandem tune`, made by a program of its own so that running out of memory
// hurts nobody: the settings it is given, run for a moment, and one JSON object with what was seen.
#pragma once

#include "cli/command.h"
#include "config/resolve.h"

namespace tandem {

// `tandem tune --probe plan-train|train|plan-generate|generate`. Exit code 5: out of memory.
int run_tune_probe(const Arguments& arguments, const Resolved& resolved);

// Flags that a probe understands and that settings do not cover.
std::vector<Option> tune_probe_options();

}  // namespace tandem
