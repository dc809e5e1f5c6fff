// Steps that would ruin a run are left out: those whose gradients are not finite, and spikes, whose
// norm is many times the usual.
//
// NormWatch decides on the device, within the step, so that the optimizer can leave the step out
// without the host: weights and moments keep their values where `good` is false, for instance
//   weight.copy_(at::where(good, updated, weight));
// Its memory is tensors, saved with the checkpoint: a resumed run decides the same.
//
// StepGuard stands on the host, hears of each step some steps later, counts, and ends the run when
// too many in a row were left out.
#pragma once

#include <ATen/core/TensorBody.h>

#include <deque>
#include <string>

#include "nn/parameters.h"

namespace tandem {

struct StepGuardOptions {
  int64_t max_bad_steps = 10;  // in a row
  double spike_factor = 20;    // times the median of the last norms; 0: only what is not finite
  int64_t window = 100;        // norms remembered
  int64_t least = 20;          // norms seen until spikes are looked for
  int64_t patience = 3;        // spikes left out in a row; the next one is the new usual
};

// [] bool: finite and at most `limit` ([] float32; infinity: any finite norm is good).
at::Tensor step_is_good(const at::Tensor& norm, const at::Tensor& limit);

// Of one phase of a step; owned and called by the replica that steps, on its stream. No call waits.
class NormWatch {
 public:
  NormWatch(const StepGuardOptions& options, at::Device device);

  // The verdict on a step with this norm ([] float32), [] bool; good norms are remembered. A norm
  // of 0 is good and says nothing of what is usual: a part that does not learn yet has it.
  at::Tensor judge(const at::Tensor& norm);
  // [] float32: above it the next step's norm is a spike.
  at::Tensor limit() const;

  NamedTensors state() const {
    return {{"norms", norms_}, {"norms.count", count_}, {"norms.spikes", spikes_}};
  }
  void load_state(const NamedTensors& state);  // throws Error(corrupt)

 private:
  StepGuardOptions options_;
  at::Tensor norms_, count_;  // [window] float32, infinity where none was seen; [] int64
  at::Tensor spikes_;         // [] int64: left out, one after another
};

class StepGuard {
 public:
  explicit StepGuard(const StepGuardOptions& options) : options_(options) {}

  // In the order of steps. Throws Error(numeric) when `max_bad_steps` steps in a row were bad, and
  // names the last of them.
  void arrived(int64_t step, double loss, double norm, bool good);

  int64_t skipped() const { return skipped_; }    // since the start of this process
  int64_t in_a_row() const { return in_a_row_; }  // up to the last step heard of
  // "step 12 was left out: its gradient norm is 310, the usual one 8.2"; empty when it was
  // good. For the log.
  const std::string& remark() const { return remark_; }

 private:
  std::string usual() const;  // the norm beside which another is a spike

  StepGuardOptions options_;
  int64_t skipped_ = 0, in_a_row_ = 0;
  std::deque<double> norms_;  // of the last good steps
  std::string remark_;
};

}  // namespace tandem
