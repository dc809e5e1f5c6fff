// Writes down the parts of steps on one device: when each began and ended by the device's own time
// and by the host's, and what the device held then.
//
//   StepRecorder recorder(device, origin, steps);
//   recorder.begin_step(7); replica.step({…, .observer = &recorder}); recorder.end_step();
//   std::vector<RecordedStep> steps = recorder.take();   // waits for the device
#pragma once

#include <cstdint>
#include <vector>

#include "observe/profile_clock.h"
#include "train/step_observer.h"

namespace tandem {

// Seconds since the profile's origin.
struct TimeSpan {
  double start = 0, end = 0;
  double seconds() const { return end - start; }
};

struct RecordedPart {
  StepPart part = StepPart::inputs;
  int phase = 0, piece = 0;
  TimeSpan host, device;
  uint64_t used = 0;  // bytes the device held when it ended
};

struct RecordedStep {
  int64_t step = 0;
  TimeSpan host, device;
  uint64_t used = 0;  // bytes the device held when it began
  std::vector<RecordedPart> parts;
  // Of the step's time, what no part accounts for.
  double unaccounted() const;
};

class StepRecorder final : public StepObserver {
 public:
  StepRecorder(LogicalDevice& device, Clock::time_point origin, int64_t steps);

  void begin_step(int64_t step);
  void end_step();
  void begin(StepPart part, int phase, int piece) override;
  void end() override;

  // What was recorded since the last take.
  std::vector<RecordedStep> take();

 private:
  double host_now() const;
  LogicalDevice& device_;
  const Clock::time_point origin_;
  DeviceClock clock_;
  std::vector<RecordedStep> steps_;
};

}  // namespace tandem
