// How long a step takes on its device, and how long that waits for batches meanwhile: the host is
// some steps ahead of it, and its own times say nothing of either.
#pragma once

#include <utility>
#include <vector>

#include "device/stream.h"

namespace tandem {

struct TimedStep {
  Event began, ended;
  std::vector<std::pair<Event, Event>> waits;  // from a batch that is asked for to its arrival

  // These wait for the device.
  double seconds() const { return ended.seconds_since(began); }
  double waited() const {
    double sum = 0;
    for (const auto& [asked, came] : waits) sum += came.seconds_since(asked);
    return sum;
  }
};

}  // namespace tandem
