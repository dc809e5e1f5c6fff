// Faults on purpose, by rank and step, to test what happens then:
// TANDEM_FAULT="vanish:rank=2,step=5".
//   vanish  the rank stops without a word      throw  it fails with an error
//   nan     its gradients are not numbers, from then on, or for `steps` steps
//   slow    it sleeps 0.2 s every step from then on
//   hang    it waits for something that never comes (until the others have given up)
//   oom     its device has no memory left, once
//   flip    one of its weights becomes another behind that step
//   judge   it fails with an error in the validation behind that step
//   disk    the disk is full when the checkpoint of that step, or a later one, is written
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tandem {

enum class FaultKind { vanish, throw_error, nan, slow, hang, oom, flip, judge, disk };

struct Fault {
  FaultKind kind;
  int rank = 0;
  int64_t step = 0;
  int64_t steps = 1;  // nan: how many, one after another
  bool strikes(int at_rank, int64_t at_step) const {
    if (at_rank != rank) return false;
    if (kind == FaultKind::slow || kind == FaultKind::disk) return at_step >= step;
    return at_step >= step && at_step < step + (kind == FaultKind::nan ? steps : 1);
  }
};

// From the text, or nothing when it is empty. Throws Error(config) for a text it does not
// understand.
std::optional<Fault> parse_fault(const std::string& text);
std::optional<Fault> fault_from_environment();

}  // namespace tandem
