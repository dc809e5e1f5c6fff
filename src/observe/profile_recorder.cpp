#include "observe/profile_recorder.h"

#include <utility>

#include "device/logical_device.h"

namespace tandem {
namespace {

constexpr int64_t parts_of_a_step = 15;  // most stages have fewer than a dozen

constexpr PartKind step_kinds[step_parts] = {
    {.word = "inputs", .colour = 0},
    {.word = "wait for data", .colour = 1},
    {.word = "copy", .of_a_phase = true, .colour = 2},
    {.word = "pass", .of_a_phase = true, .computes = true, .colour = 3},
    {.word = "reduction", .of_a_phase = true, .colour = 4},
    {.word = "optimizer", .of_a_phase = true, .computes = true, .colour = 5},
    {.word = "finish", .colour = 6},
    {.word = "read back", .colour = 7},
};
constexpr PartKind music_kinds[] = {
    {.word = "captions", .computes = true, .colour = 1},
    {.word = "decoding", .computes = true, .colour = 3},
    {.word = "sound", .computes = true, .colour = 5},
    {.word = "copy to the host", .colour = 2},
    {.word = "writing", .colour = 7},
    {.word = "change of threads", .colour = 6},
};

}  // namespace

const PartKind& kind_of(StepPart part) { return step_kinds[static_cast<size_t>(part)]; }
const PartKind& kind_of(MusicPart part) { return music_kinds[static_cast<size_t>(part)]; }

double RecordedStep::unaccounted() const {
  double rest = device.seconds();
  for (const RecordedPart& part : parts) rest -= part.device.seconds();
  return rest;
}

PartRecorder::PartRecorder(LogicalDevice& device, Clock::time_point origin, int64_t steps,
                           int64_t most)
    : device_(device),
      origin_(origin),
      most_(most),
      clock_(device, origin, static_cast<size_t>(steps * (2 + 2 * most))) {
  steps_.reserve(static_cast<size_t>(steps));
}

StepRecorder::StepRecorder(LogicalDevice& device, Clock::time_point origin, int64_t steps)
    : PartRecorder(device, origin, steps, parts_of_a_step) {}

// Captions and decoding, three parts of a clip, two changes of threads.
MusicRecorder::MusicRecorder(LogicalDevice& device, Clock::time_point origin, int64_t batches,
                             int64_t clips)
    : PartRecorder(device, origin, batches, 4 + 3 * clips) {}

double PartRecorder::host_now() const {
  return std::chrono::duration<double>(Clock::now() - origin_).count();
}

void PartRecorder::begin_step(int64_t step) {
  RecordedStep& made = steps_.emplace_back();
  made.parts.reserve(static_cast<size_t>(most_));
  made.step = step;
  made.used = device_.memory().used();
  made.host.start = host_now();
  clock_.mark();
}

void PartRecorder::end_step() {
  clock_.mark();
  steps_.back().host.end = host_now();
}

void PartRecorder::begin_part(const PartKind& kind, int phase, int piece, Stream* stream) {
  steps_.back().parts.push_back(
      {.kind = &kind, .phase = phase, .piece = piece, .host = {.start = host_now()}});
  clock_.mark(stream);
}

void PartRecorder::end_part(Stream* stream) {
  clock_.mark(stream);
  RecordedPart& part = steps_.back().parts.back();
  part.host.end = host_now();
  part.used = device_.memory().used();
}

// Marks stand in the order of the steps: a step's begin, begin and end of each part, its end.
std::vector<RecordedStep> PartRecorder::take() {
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
