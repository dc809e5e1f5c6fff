// report.html of a profile: a timeline of the last steps, the tables, memory, on one page that
// needs no network.
#pragma once

#include <string>

#include "observe/profile.h"

namespace tandem {

std::string make_profile_report(const Profile& profile);

// The picture alone, SVG: a row for the host's thread, for the device, for each stream and for each
// thread of the feed, and the memory below, over the same time. The last `steps` traced steps, or
// timed ones where none were traced.
std::string timeline_svg(const Profile& profile, size_t steps = 3);

}  // namespace tandem
