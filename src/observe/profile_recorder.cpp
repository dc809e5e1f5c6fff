#include "observe/profile_recorder.h"

#include <utility>

#include "device/logical_device.h"

namespace tandem {
namespace {
// Two marks for a step and for each of its parts; most stages have fewer than a dozen.
constexpr int64_t usual_marks = 32;
}  // namespace

double RecordedStep::unaccounted() const {
  double rest = device.seconds();
  for (const RecordedPart& part : parts) rest -= part.device.seconds();
  return rest;
}

StepRecorder::StepRecorder(LogicalDevice& device, Clock::time_point origin, int64_t steps)
    : device_(device),
      origin_(origin),
      clock_(device, origin, static_cast<size_t>(steps * usual_marks)) {
  steps_.reserve(static_cast<size_t>(steps));
}

double StepRecorder::host_now() const {
  return std::chrono::duration<double>(Clock::now() - origin_).count();
}

void StepRecorder::begin_step(int64_t step) {
  RecordedStep& made = steps_.emplace_back();
  made.parts.reserve(usual_marks / 2);
  made.step = step;
  made.used = device_.memory().used();
  made.host.start = host_now();
  clock_.mark();
}

void StepRecorder::end_step() {
  clock_.mark();
  steps_.back().host.end = host_now();
}

void StepRecorder::begin(StepPart part, int phase, int piece) {
  steps_.back().parts.push_back(
      {.part = part, .phase = phase, .piece = piece, .host = {.start = host_now()}});
  clock_.mark();
}

void StepRecorder::end() {
  clock_.mark();
  RecordedPart& part = steps_.back().parts.back();
  part.host.end = host_now();
  part.used = device_.memory().used();
}

// Marks stand in the order of the steps: a step's begin, begin and end of each part, its end.
std::vector<RecordedStep> StepRecorder::take() {
  const std::vector<double> seconds = clock_.seconds();
  size_t marks = 0;
  for (const RecordedStep& step : steps_) marks += 2 + 2 * step.parts.size();
  size_t at = seconds.size() - marks;
  for (RecordedStep& step : steps_) {
    step.device.start = seconds[at++];
    for (RecordedPart& part : step.parts) {
      part.device.start = seconds[at++];
      part.device.end = seconds[at++];
    }
    step.device.end = seconds[at++];
  }
  return std::exchange(steps_, {});
}

}  // namespace tandem
