#include "train/faults.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>

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
            "`vanish:rank=2,step=5` (vanish, throw, nan, slow, hang, oom, flip, judge or disk)",
            text));
  };
  const auto halves = split(text, ':');
  const auto kind = kinds.find(halves[0]);
  if (halves.size() != 2 || kind == kinds.end()) throw refuse();
  Fault fault{.kind = kind->second};
  for (const std::string& field : split(halves[1], ',')) {
    const auto sides = split(field, '=');
    const auto number = sides.size() == 2 ? parse_int(sides[1]) : std::nullopt;
    if (!number || (sides[0] != "rank" && sides[0] != "step" && sides[0] != "steps"))
      throw refuse();
    if (sides[0] == "rank") fault.rank = static_cast<int>(*number);
    if (sides[0] == "step") fault.step = *number;
    if (sides[0] == "steps") fault.steps = *number;
  }
  return fault;
}

std::optional<Fault> fault_from_environment() {
  const char* text = std::getenv("TANDEM_FAULT");
  return parse_fault(text ? text : "");
}

}  // namespace tandem
