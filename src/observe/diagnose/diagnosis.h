// The verdict: one bottleneck, the figures that prove it, what would be gained, and what to try.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/diagnose/figures.h"

namespace tandem {

enum class Bottleneck {
  fed,  // nothing to gain
  slow_storage,
  decode_bound,
  data_device_bound,
  transfer_bound,
  queue_too_small,
  too_few_workers,
  too_many_workers,
  launch_bound,
  host_sync,
  recapturing,
  compute_bound,
  slow_device,
  throttled,
  memory_pressure,
};
std::string to_string(Bottleneck bottleneck);    // "slow-storage"
const char* sentence_of(Bottleneck bottleneck);  // what it means
std::optional<Bottleneck> bottleneck_named(const std::string& name);
const std::vector<Bottleneck>& all_bottlenecks();

struct Evidence {
  std::string name;  // "wait_share"
  double value = 0;
  std::string words;  // "31 % of a step waits for data"
};

// What to try: settings to add to the command (`data.num_workers=8`), or another command. Empty
// where there is nothing to try, or nothing of ours.
struct Remedy {
  std::vector<std::string> settings;
  std::vector<std::string> command;  // without the program's name: {"prepare", DIR, …}
  std::string why;
  // A whole line of another program, for the user to run: nothing that can be tried from here.
  std::string outside = {};
  bool empty() const { return settings.empty() && command.empty(); }
};

struct Diagnosis {
  Bottleneck verdict = Bottleneck::fed;
  std::string sentence;  // what it means here
  std::vector<Evidence> evidence;
  // The figure the verdict names, in which an improvement shows: lower is better.
  Evidence named;
  double expected_gain = 0;  // share of the time a clip takes
  Remedy remedy;
};

// Exactly one verdict: of all that are true, the one with the most to gain.
Diagnosis judge(const Figures& figures, const Circumstances& now);

// The value of `name` (a figure that some verdict names) in other figures: for before and after.
double named_figure(Bottleneck bottleneck, const Figures& figures, const Circumstances& now);

}  // namespace tandem
