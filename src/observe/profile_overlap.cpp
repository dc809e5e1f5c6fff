#include "observe/profile_overlap.h"

#include <algorithm>
#include <map>

#include "device/logical_device.h"
#include "observe/profile.h"

namespace tandem {
namespace {

std::vector<TimeSpan> computing(const Profile& profile) {
  std::vector<TimeSpan> spans;
  for (const ProfiledReplica& replica : profile.replicas)
    for (const RecordedStep& step : replica.traced)
      for (const RecordedPart& part : step.parts)
        if (part.kind->computes) spans.push_back(part.device);
  return merged(std::move(spans));
}

// The stream of a GPU that was busiest trains; what others do goes on beside it.
Overlaps overlaps_of_kernels(const Profile& profile) {
  std::map<std::pair<int, int64_t>, double> busy;
  std::map<int, int64_t> trains;
  for (const TracedKernel& kernel : profile.kernels.kernels)
    busy[{kernel.cuda_device, kernel.stream}] += kernel.end - kernel.start;
  for (const auto& [place, seconds] : busy) {
    const auto found = trains.find(place.first);
    if (found == trains.end() || busy[{place.first, found->second}] < seconds)
      trains[place.first] = place.second;
  }
  Overlaps sum;
  for (const auto& [device, stream] : trains) {
    std::vector<TimeSpan> computing, copies, beside;
    for (const TracedKernel& kernel : profile.kernels.kernels) {
      if (kernel.cuda_device != device) continue;
      const TimeSpan span{kernel.start, kernel.end};
      if (kernel.stream == stream && !kernel.copies) computing.push_back(span);
      if (kernel.copies) copies.push_back(span);
      if (kernel.stream != stream) beside.push_back(span);
    }
    const auto worked = merged(std::move(computing));
    const auto add = [&](Overlap& to, std::vector<TimeSpan> spans) {
      const auto all = merged(std::move(spans));
      to.seconds += total_seconds(all);
      to.hidden += common_seconds(all, worked);
    };
    add(sum.copies, std::move(copies));
    add(sum.beside, std::move(beside));
  }
  return sum;
}

}  // namespace

std::vector<TimeSpan> merged(std::vector<TimeSpan> spans) {
  std::ranges::sort(spans, {}, &TimeSpan::start);
  std::vector<TimeSpan> out;
  for (const TimeSpan& span : spans) {
    if (!out.empty() && span.start <= out.back().end) {
      out.back().end = std::max(out.back().end, span.end);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

double total_seconds(const std::vector<TimeSpan>& merged_spans) {
  double sum = 0;
  for (const TimeSpan& span : merged_spans) sum += span.seconds();
  return sum;
}

double common_seconds(const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b) {
  double sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max(0.0, std::min(a[i].end, b[j].end) - std::max(a[i].start, b[j].start));
    a[i].end < b[j].end ? ++i : ++j;
  }
  return sum;
}

Overlaps overlaps_of(const Profile& profile) {
  if (!profile.kernels.kernels.empty()) return overlaps_of_kernels(profile);
  std::vector<TimeSpan> copies, beside;
  const OperationRecord& record = profile.operations;
  for (const TracedOperation& operation : record.operations) {
    if (record.threads[operation.thread].starts_with("replica-")) continue;
    beside.push_back({operation.start, operation.end});
    const bool moves = operation.device && operation.device != profile.data_device;
    if (moves && record.names[operation.name] == "aten::copy_")
      copies.push_back({operation.start, operation.end});
  }
  const auto worked = computing(profile);
  const auto overlap = [&](std::vector<TimeSpan> spans) {
    const auto all = merged(std::move(spans));
    return Overlap{total_seconds(all), common_seconds(all, worked)};
  };
  return {overlap(std::move(copies)), overlap(std::move(beside))};
}

}  // namespace tandem
