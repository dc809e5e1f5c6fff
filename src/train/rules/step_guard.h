// Counts the steps that were left out (nn/step_verdict.h decides which, on the device), some steps
// later, and ends the run when too many in a row were, or spikes come again and again.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace tandem {

struct StepGuardOptions {
  int64_t max_bad_steps = 10;  // in a row, or as many spikes that no good steps made up for
  double spike_factor = 20;    // times the usual, for the remark
  int64_t window = 100;        // norms the usual one is the median of
};

struct TrainingConfig;
// `training.max_bad_steps`; in fp16 also the steps by which the loss scale finds its place, which
// say nothing of the model.
int64_t bad_steps_allowed(const TrainingConfig& training);

class StepGuard {
 public:
  explicit StepGuard(const StepGuardOptions& options) : options_(options) {}

  // In the order of steps. Throws Error(numeric) when too many steps were bad, and names the last
  // of them.
  void arrived(int64_t step, double loss, double norm, bool good);

  int64_t skipped() const { return skipped_; }    // since the start of this process
  int64_t in_a_row() const { return in_a_row_; }  // up to the last step heard of
  bool ended() const { return ended_; }           // `arrived` threw
  int64_t last_bad() const { return last_bad_; }  // 0: none was
  // "step 12 was left out: its gradient norm is 310, the usual one 8.2"; empty when it was
  // good. For the log.
  const std::string& remark() const { return remark_; }

 private:
  std::string usual() const;  // the norm beside which another is a spike

  StepGuardOptions options_;
  int64_t skipped_ = 0, in_a_row_ = 0, last_bad_ = 0;
  int64_t worn_ = 0;  // as VerdictMemory::worn
  bool ended_ = false;
  std::deque<double> norms_;  // of the last good steps
  std::string remark_;
};

}  // namespace tandem
