// Which of the settings that `tandem tune` measured are found.
#pragma once

#include <functional>
#include <vector>

#include "observe/tune_walk.h"

namespace tandem {

// The fastest of those that are allowed; of those that are as fast, the one with the least memory,
// then the fewest threads and places, unless it waits for data. nullptr: none is allowed.
const TuneTrial* best_trial(const std::vector<TuneTrial>& trials,
                            const std::function<bool(const TuneTrial&)>& allowed, double tolerance);

}  // namespace tandem
