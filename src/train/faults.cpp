#include "train/faults.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

std::optional<Fault> parse_fault(const std::string& text) {
  if (text.empty()) return std::nullopt;
  static const std::map<std::string, FaultKind> kinds = {
      {"vanish", FaultKind::vanish}, {"throw", FaultKind::throw_error}, {"nan", FaultKind::nan},
      {"slow", FaultKind::slow},     {"hang", FaultKind::hang},         {"oom", FaultKind::oom},
      {"flip", FaultKind::flip},     {"judge", FaultKind::judge},       {"disk", FaultKind::disk}};
  const auto refuse = [&] {
    return Error(
        ErrorKind::config,
        fmt::format(
            "TANDEM_FAULT is \"{}\"; expected for example "
            "`vanish:rank=2,step=5` (vanish, throw, nan, slow, hang, oom, flip, judge or disk; of "
            "`rank=data` throw, slow, hang or oom)",
            text));
  };
  const auto halves = split(text, ':');
  const auto kind = kinds.find(halves[0]);
  if (halves.size() != 2 || kind == kinds.end()) throw refuse();
  Fault fault{.kind = kind->second};
  for (const std::string& field : split(halves[1], ',')) {
    const auto sides = split(field, '=');
    if (field == "rank=data") {
      fault.rank = Fault::data;
      continue;
    }
    const auto number = sides.size() == 2 ? parse_int(sides[1]) : std::nullopt;
    if (!number || *number < 0 || (sides[0] != "rank" && sides[0] != "step" && sides[0] != "steps"))
      throw refuse();
    if (sides[0] == "rank") fault.rank = static_cast<int>(*number);
    if (sides[0] == "step") fault.step = *number;
    if (sides[0] == "steps") fault.steps = *number;
  }
  static const std::set<FaultKind> of_data = {FaultKind::throw_error, FaultKind::slow,
                                              FaultKind::hang, FaultKind::oom};
  if (fault.at_data() && !of_data.contains(fault.kind)) throw refuse();
  return fault;
}

void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

Batch FaultyBatches::prepare(const HostBatch& host) {
  const int64_t step = host.index / accumulation_ + 1;
  if (fault_.strikes(Fault::data, step)) {
    if (fault_.kind == FaultKind::slow) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (fault_.kind == FaultKind::hang) hang();
    if (fault_.kind == FaultKind::throw_error)
      throw Error(ErrorKind::internal,
                  fmt::format("fault on purpose in the preparation of step {}", step));
    if (fault_.kind == FaultKind::oom)
      throw Error(ErrorKind::memory,
                  fmt::format("the data device has no memory left for step {}, on purpose", step));
  }
  return whole_.prepare(host);
}

std::optional<Fault> fault_from_environment() {
  const char* text = std::getenv("TANDEM_FAULT");
  return parse_fault(text ? text : "");
}

}  // namespace tandem
