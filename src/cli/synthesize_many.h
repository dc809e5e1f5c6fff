// `tandem synthesize` for a file of many texts: progress, summary, exit code.
#pragma once

#include "cli/synthesize_options.h"

namespace tandem {

// 0, or 3 when a line failed.
int speak_many(const SynthesizeRequest& request);

}  // namespace tandem
