// Hears which part of a step begins and ends, for whoever measures it. Called on the replica's
// thread, with its device's scope open; what a part does may only be queued when it ends. Nothing
// is asked where no observer is given.
#pragma once

namespace tandem {

// In the order of a step. Every batch of a step has wait, copy, pass and reduction again.
enum class StepPart {
  inputs,     // what changes from step to step, set on the device
  wait,       // for the batch
  copy,       // of the batch to where a captured pass reads it
  pass,       // forward and backward, piece by piece
  reduction,  // gradients summed over the replicas, as far as the pass did not hide it
  optimizer,  // norm, clipping, update of one phase
  finish,     // running sums, terms of all replicas
  read_back,  // of what the step measured
};
constexpr int step_parts = 8;

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // Parts follow each other and do not nest.
  virtual void begin(StepPart part, int phase, int piece) = 0;
  virtual void end() = 0;
};

// A part, for as long as this lives.
class StepMark {
 public:
  StepMark(StepObserver* observer, StepPart part, int phase = 0, int piece = 0)
      : observer_(observer) {
    if (observer_) observer_->begin(part, phase, piece);
  }
  ~StepMark() {
    if (observer_) observer_->end();
  }
  StepMark(const StepMark&) = delete;
  StepMark& operator=(const StepMark&) = delete;

 private:
  StepObserver* observer_;
};

}  // namespace tandem
