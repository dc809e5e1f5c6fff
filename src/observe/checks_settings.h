// Settings that cost speed, have no effect or contradict each other, with the value that mends them
// where one is certain. Whether a file loads at all is for `resolve` to say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/resolve.h"
#include "config/value.h"
#include "observe/checks.h"

namespace tandem {

// "data.num_workers" should be 16.
struct SettingFix {
  std::string key;
  Value value;
};

struct SettingCheck {
  Check check;
  std::optional<SettingFix> fix;
};

struct SettingsMachine {
  unsigned cores = 1;
  std::vector<GpuInfo> gpus;
};

// Graph mode, fusion, native loading, prefetching, workers and queue (contract 003-12), one line
// each.
std::vector<SettingCheck> check_speed_settings(const Config& config,
                                               const SettingsMachine& machine);
// One line for each pair that does not go together; one PASS where all do.
std::vector<SettingCheck> check_contradictions(const Resolved& settings,
                                               const SettingsMachine& machine);

}  // namespace tandem
