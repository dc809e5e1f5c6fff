// Writes down the parts of steps on one device: when each began and ended by the device's own time
// and by the host's, and what the device held then. A step is one of a training, or a batch of
// clips.
//
//   StepRecorder recorder(device, origin, steps);
//   recorder.begin_step(7); replica.step({…, .observer = &recorder}); recorder.end_step();
//   std::vector<RecordedStep> steps = recorder.take();   // waits for the device
#pragma once

#include <cstdint>
#include <vector>

#include "generate/music_observer.h"
#include "observe/profile_clock.h"
#include "train/step_observer.h"

namespace tandem {

// Seconds since the profile's origin.
struct TimeSpan {
  double start = 0, end = 0;
  double seconds() const { return end - start; }
};

// What a part is.
struct PartKind {
  const char* word = "";
  bool of_a_phase = false, computes = false;
  int colour = 0;  // of the timeline
};
const PartKind& kind_of(StepPart part);
const PartKind& kind_of(MusicPart part);

struct RecordedPart {
  const PartKind* kind = nullptr;
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

class PartRecorder {
 public:
  void begin_step(int64_t step);
  void end_step();
  // What was recorded since the last take.
  std::vector<RecordedStep> take();

 protected:
  // `most`: of the parts of a step; more are recorded too, at the cost of some time.
  PartRecorder(LogicalDevice& device, Clock::time_point origin, int64_t steps, int64_t most);
  void begin_part(const PartKind& kind, int phase, int piece, Stream* stream);
  void end_part(Stream* stream);

 private:
  double host_now() const;
  LogicalDevice& device_;
  const Clock::time_point origin_;
  const int64_t most_;
  DeviceClock clock_;
  std::vector<RecordedStep> steps_;
};

class StepRecorder final : public PartRecorder, public StepObserver {
 public:
  StepRecorder(LogicalDevice& device, Clock::time_point origin, int64_t steps);
  void begin(StepPart part, int phase, int piece) override {
    begin_part(kind_of(part), phase, piece, nullptr);
  }
  void end() override { end_part(nullptr); }
};

// For batches one at a time: each handed over whole before the next begins.
class MusicRecorder final : public PartRecorder, public MusicObserver {
 public:
  MusicRecorder(LogicalDevice& device, Clock::time_point origin, int64_t batches, int64_t clips);
  void begin(MusicPart part, Stream& stream) override { begin_part(kind_of(part), 0, 0, &stream); }
  void end(Stream& stream) override { end_part(&stream); }
};

}  // namespace tandem
