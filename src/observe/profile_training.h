// The profile of a stage's training on this machine's devices: real steps on real batches, thrown
// away afterwards. Nothing is written to a run's folder.
//
//   Profile profile = profile_training(config, {.steps = 20});
//   print(profile_text(profile));
//
// Sections follow each other: steps whose parts are timed (the figures), steps whose operations and
// kernels are traced as well (the tables and the trace), one batch again and again with and without
// all that, which tells what the profiling itself costs, and on a GPU a few steps that are not
// captured, which tell how much work each kernel is.
#pragma once

#include "observe/profile.h"

namespace tandem {

struct Config;

// Needs configured devices. Throws Error as training does.
Profile profile_training(const Config& config, const ProfileOptions& options);

}  // namespace tandem
