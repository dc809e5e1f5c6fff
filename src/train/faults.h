// Faults on purpose, by rank and step, to test what the others do:
// TANDEM_FAULT="vanish:rank=2,step=5".
//   vanish  the rank stops without a word      throw  it fails with an error
//   nan     its loss becomes not-a-number      slow   it sleeps 0.2 s every step from then on
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tandem {

enum class FaultKind { vanish, throw_error, nan, slow };

struct Fault {
  FaultKind kind;
  int rank = 0;
  int64_t step = 0;
  bool strikes(int at_rank, int64_t at_step) const {
    return at_rank == rank && (kind == FaultKind::slow ? at_step >= step : at_step == step);
  }
};

// From the text, or nothing when it is empty. Throws Error(config) for a text it does not
// understand.
std::optional<Fault> parse_fault(const std::string& text);
std::optional<Fault> fault_from_environment();

}  // namespace tandem
