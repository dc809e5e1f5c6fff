// `tandem train --watch RUN`: follows a run of this or another process until it ends.
#pragma once

#include <vector>

#include "cli/command.h"

namespace tandem {

// --watch, --once and --report, for the table of the command.
std::vector<Option> watch_options();

// True when the words ask to watch, not to train. Throws Error(usage) for --once or --report
// without
// --watch.
bool asks_to_watch(const Arguments& arguments);

// Returns 0 when the run has ended, was left with Ctrl-C, or, with --once, was shown. Throws
// Error(config) when the folder holds no run, Error(usage) for words that have no place here.
int run_watch(const Arguments& arguments);

}  // namespace tandem
