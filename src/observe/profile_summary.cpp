#include "observe/profile_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "device/logical_device.h"

namespace tandem {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return values.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double at_share(const std::vector<double>& values, double share) {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const auto at = static_cast<size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

// Sums of one name.
struct Sum {
  double calls = 0, self = 0, whole = 0, flops = 0, bytes = 0;
};

std::vector<WorkRow> rows_of(const std::map<std::string, Sum>& sums, double steps, double step,
                             const DeviceLimits& limits) {
  std::vector<WorkRow> rows;
  if (steps <= 0) return rows;
  for (const auto& [name, sum] : sums) {
    WorkRow row{.name = name, .calls = sum.calls / steps, .seconds = sum.self / steps};
    row.share = step > 0 ? row.seconds / step : 0;
    if (sum.whole > 0) {
      row.flops = sum.flops / sum.whole;
      row.bytes = sum.bytes / sum.whole;
      row.limit = share_of_limit(limits, sum.flops, sum.bytes, sum.whole);
    }
    rows.push_back(std::move(row));
  }
  std::ranges::sort(rows, [](const WorkRow& a, const WorkRow& b) {
    return std::tie(b.seconds, a.name) < std::tie(a.seconds, b.name);
  });
  return rows;
}

double traced_step(const ProfiledReplica& replica) {
  double sum = 0;
  for (const RecordedStep& step : replica.traced) sum += step.device.seconds();
  return replica.traced.empty() ? 0 : sum / static_cast<double>(replica.traced.size());
}

void add(Sum& sum, const TracedOperation& operation) {
  sum.calls += 1;
  sum.self += operation.self;
  sum.whole += operation.end - operation.start;
  sum.flops += operation.flops;
  sum.bytes += operation.bytes;
}

}  // namespace

const char* step_word(const Profile& profile) { return profile.generates() ? "batch" : "step"; }

std::string part_name(const Profile& profile, const RecordedPart& part) {
  std::string name = part.kind->word;
  if (part.kind->of_a_phase && profile.phases.size() > 1)
    name += " " + profile.phases[static_cast<size_t>(part.phase)];
  if (part.piece > 0) name += fmt::format(", piece {}", part.piece + 1);
  return name;
}

StepFigures step_figures_of(const Profile& profile, const ProfiledReplica& replica) {
  // One named part in every step, 0 in steps that lack it.
  struct Column {
    std::string name;
    std::vector<double> seconds;
    double host = 0;
  };
  const size_t count = replica.timed.size();
  StepFigures figures{.steps = static_cast<int64_t>(count)};
  if (count == 0) return figures;
  std::vector<double> steps(count), rests(count);
  std::vector<Column> columns;  // in the order they come
  const auto column = [&](const std::string& name) -> Column& {
    const auto found = std::ranges::find(columns, name, &Column::name);
    if (found != columns.end()) return *found;
    return columns.emplace_back(Column{.name = name, .seconds = std::vector<double>(count)});
  };
  for (size_t i = 0; i < count; ++i) {
    const RecordedStep& step = replica.timed[i];
    steps[i] = step.device.seconds();
    rests[i] = step.unaccounted();
    for (const RecordedPart& part : step.parts) {
      Column& place = column(part_name(profile, part));
      place.seconds[i] += part.device.seconds();
      place.host += part.host.seconds();
    }
  }
  figures.mean = mean_of(steps);
  figures.deviation = deviation_of(steps);
  figures.median = at_share(steps, 0.5);
  figures.p95 = at_share(steps, 0.95);
  figures.wall = replica.wall / static_cast<double>(count);
  const auto share = [&](double seconds) { return figures.mean > 0 ? seconds / figures.mean : 0; };
  for (const Column& place : columns) {
    const double mean = mean_of(place.seconds);
    figures.parts.push_back({.name = place.name,
                             .seconds = mean,
                             .deviation = deviation_of(place.seconds),
                             .share = share(mean),
                             .host_seconds = place.host / static_cast<double>(count)});
  }
  const double rest = mean_of(rests);
  figures.accounted = 1 - share(rest);
  figures.parts.push_back({.name = "not accounted for",
                           .seconds = rest,
                           .deviation = deviation_of(rests),
                           .share = share(rest)});
  return figures;
}

double StepFigures::seconds_of(const PartKind& kind) const {
  const auto found = std::ranges::find(parts, kind.word, &PartRow::name);
  return found == parts.end() ? 0 : found->seconds;
}

// `n` batches one at a time take n (decoding + the rest); following each other they hide the rest
// of all but the last.
BatchFigures batch_figures_of(const Profile& profile, const ProfiledReplica& replica) {
  BatchFigures figures;
  const StepFigures step = step_figures_of(profile, replica);
  if (!profile.music || step.mean <= 0) return figures;
  const MusicFigures& music = *profile.music;
  const auto clips = static_cast<double>(replica.rows);
  if (music.decoding_steps > 0)
    figures.decoding_step =
        step.seconds_of(kind_of(MusicPart::decoding)) / static_cast<double>(music.decoding_steps);
  figures.clips_per_second = clips / step.mean;
  if (music.following < 2) return figures;
  const double rest = step.seconds_of(kind_of(MusicPart::sound)) +
                      step.seconds_of(kind_of(MusicPart::copy)) +
                      step.seconds_of(kind_of(MusicPart::hand_over));
  const auto count = static_cast<double>(music.following);
  if (rest > 0)
    figures.hidden =
        std::clamp((count * step.mean - music.following_seconds) / ((count - 1) * rest), 0.0, 1.0);
  figures.following = step.mean - figures.hidden * rest;
  figures.following_clips_per_second = clips / figures.following;
  return figures;
}

bool belongs_to(const Profile& profile, const TracedOperation& operation, size_t rank) {
  // An engine works on threads of its device; a replica on its own.
  if (profile.generates()) return operation.device == profile.replicas[rank].device;
  return profile.operations.threads[operation.thread] == fmt::format("replica-{}", rank);
}

std::vector<WorkRow> operation_rows(const Profile& profile, size_t rank) {
  const OperationRecord& record = profile.operations;
  const ProfiledReplica& replica = profile.replicas[rank];
  std::map<std::string, Sum> sums;
  for (const TracedOperation& operation : record.operations)
    if (belongs_to(profile, operation, rank)) add(sums[record.names[operation.name]], operation);
  // On a GPU these are times of launches, which no limit of the device bounds.
  const DeviceLimits none;
  const bool launches = replica.device && replica.device->kind() == DeviceKind::cuda;
  return rows_of(sums, static_cast<double>(replica.traced.size()), traced_step(replica),
                 launches ? none : replica.limits);
}

std::vector<WorkRow> feed_rows(const Profile& profile) {
  if (profile.replicas.empty()) return {};
  const OperationRecord& record = profile.operations;
  std::map<std::string, Sum> sums;
  for (const TracedOperation& operation : record.operations) {
    bool ours = false;
    for (size_t rank = 0; rank < profile.replicas.size() && !ours; ++rank)
      ours = belongs_to(profile, operation, rank);
    if (!ours) add(sums[record.names[operation.name]], operation);
  }
  const ProfiledReplica& first = profile.replicas[0];
  return rows_of(sums, static_cast<double>(first.traced.size()), traced_step(first), {});
}

std::vector<WorkRow> kernel_rows(const Profile& profile, size_t rank) {
  const ProfiledReplica& replica = profile.replicas[rank];
  std::map<std::string, Sum> sums;
  for (const TracedKernel& kernel : profile.kernels.kernels) {
    if (!replica.device || kernel.cuda_device != replica.device->info().cuda_index) continue;
    Sum& sum = sums[short_kernel_name(kernel.name)];
    sum.calls += 1;
    sum.self += kernel.end - kernel.start;
    sum.whole += kernel.end - kernel.start;
    // A copy on the device reads and writes.
    const bool both = kernel.name.find("DtoD") != std::string::npos;
    sum.bytes += kernel.bytes * (both ? 2 : 1);
  }
  for (auto& [name, sum] : sums) {
    const auto rate = replica.rates.find(name);
    if (rate == replica.rates.end() || !rate->second.told()) continue;
    sum.flops = rate->second.flops * sum.whole;
    sum.bytes = rate->second.bytes * sum.whole;
  }
  return rows_of(sums, static_cast<double>(replica.traced.size()), traced_step(replica),
                 replica.limits);
}

}  // namespace tandem
