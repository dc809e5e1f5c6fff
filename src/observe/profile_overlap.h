// Times as sets: how long anything of a kind went on, and how long two kinds went on at once.
#pragma once

#include <vector>

#include "observe/profile_recorder.h"

namespace tandem {

// In order and apart from each other; what touches or overlaps becomes one.
std::vector<TimeSpan> merged(std::vector<TimeSpan> spans);
double total_seconds(const std::vector<TimeSpan>& merged_spans);
// Of two merged lists: seconds that lie in both.
double common_seconds(const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b);

struct Profile;

// Work beside the step, and how much of it ran while the step computed. On GPUs from the kernels;
// elsewhere from what the feed's threads did.
struct Overlap {
  double seconds = 0, hidden = 0;  // of `seconds`, those at which a pass or an update ran
};
struct Overlaps {
  Overlap copies;  // of batches to the model's device
  Overlap beside;  // everything the feed did
};
Overlaps overlaps_of(const Profile& profile);

}  // namespace tandem
