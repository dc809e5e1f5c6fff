// `tandem profile --for generate`: what is to be made, from the settings of `tandem generate`.
#pragma once

#include "cli/command.h"
#include "observe/profile.h"

namespace tandem {

// The words of `tandem generate` that mean the same: --batch-size becomes clips at once, --data the
// captions; without captions one is made up.
Arguments generate_words(const Arguments& arguments);

// Configures the devices, loads the model and profiles. Throws what `tandem generate` throws.
Profile profile_generate(const Arguments& words, const ProfileOptions& options);

}  // namespace tandem
