// The rules behind `judge`, one a question. Each looks at figures only and says nothing where they
// do not show its case. Private to the diagnosis.
#pragma once

#include "observe/diagnose/diagnosis.h"

namespace tandem::rules {

using Found = std::optional<Diagnosis>;

// Does the step wait for data? Names the stage that is to blame.
Found starving(const Figures& figures, const Circumstances& now);
// Is a fed step longer than a replayed one although it waits for nothing?
Found slowed(const Figures& figures, const Circumstances& now);

Found recapturing(const Figures& figures, const Circumstances& now);
Found host_sync(const Figures& figures, const Circumstances& now);
Found launch_bound(const Figures& figures, const Circumstances& now);
// Is a GPU idle although nothing is waited for? Then it waits for launches.
Found idle_gpu(const Figures& figures, const Circumstances& now);
Found compute_bound(const Figures& figures, const Circumstances& now);

Found slow_device(const Figures& figures, const Circumstances& now);
Found throttled(const Figures& figures, const Circumstances& now);
// `short_of`: the batch had to be cut; `nearly_full`: it may have to be.
Found short_of_memory(const Figures& figures, const Circumstances& now);
Found nearly_full(const Figures& figures, const Circumstances& now);
double fullest_share(const Figures& figures);  // of the memory of a device that takes part

// Other programs keep this one's threads from their cores.
bool disturbed(const Figures& figures);
// Seconds a step that were lost to waiting. Where the device works while the host goes on, those by
// which a fed step is longer than a replayed one: a host that is ahead also waits, and loses
// nothing.
double lost_wait(const Figures& figures);
// Shares of a fed step.
double wait_share(const Figures& figures);
double lost_share(const Figures& figures);  // against a replayed one, or waiting, whichever is more

// What the data's path is called in a command; "DIR" where it is not known.
std::string data_of(const Circumstances& now);
std::string percent(double share);  // "31 %"
std::string milliseconds(double seconds);

}  // namespace tandem::rules
