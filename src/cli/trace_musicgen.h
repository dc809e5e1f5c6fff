// `tandem trace musicgen`: one generation with every intermediate. The command and its options are
// declared in trace.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace tandem {

std::vector<Option> trace_musicgen_options();  // that the other models do not have
int run_trace_musicgen(const Arguments& arguments);

// What the commands of all models read. Each throws Error(usage) with the flag.
std::string trace_needs(const Arguments& arguments, const std::string& flag, const char* what);
double trace_number(const Arguments& arguments, const std::string& flag, double otherwise);
int64_t trace_whole(const Arguments& arguments, const std::string& flag, int64_t otherwise);

}  // namespace tandem
