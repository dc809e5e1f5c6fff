#include "observe/profile_attribution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "observe/profile_kernels.h"
#include "observe/profile_launches.h"

namespace tandem {
namespace {

constexpr double least_covered = 0.8;  // of the time of kernels of one short name
constexpr double least_known = 0.95;   // of the launches that stand for those of another count
// By how much the two counts may differ where launches are unlike: the driver loses some of many.
constexpr double near_enough = 0.02;

// All of one short name.
struct Sum {
  double seconds = 0, accounted = 0, flops = 0;
  double moving = 0, bytes = 0;  // seconds of those whose bytes are known
  int64_t launches = 0, known = 0, captured = 0;
};

// What the launches of the captured trace did, as many as `count`; empty: it cannot be told.
std::vector<LaunchWork> matched(const std::vector<LaunchWork>& launches, int64_t steps,
                                size_t count, int64_t captured_steps) {
  const auto linked = static_cast<double>(launches.size()) * static_cast<double>(captured_steps);
  const auto captured = static_cast<double>(count) * static_cast<double>(steps);
  std::vector<LaunchWork> work;
  if (linked == captured) {
    for (size_t i = 0; i < count; ++i) work.push_back(launches[i % launches.size()]);
    return work;
  }
  // Another count: the mean launch stands for all of them, if they are alike or nearly as many.
  LaunchWork mean{.known = true};
  double known = 0;
  bool alike = true;
  const LaunchWork* first = nullptr;
  for (const LaunchWork& one : launches) {
    if (!one.known) continue;
    if (!first) first = &one;
    alike = alike && one == *first;
    mean.flops += one.flops;
    mean.bytes += one.bytes;
    known += 1;
  }
  if (known == 0 || known < least_known * static_cast<double>(launches.size())) return {};
  if (!alike && std::abs(linked - captured) > near_enough * captured) return {};
  mean.flops /= known;
  mean.bytes /= known;
  work.assign(count, mean);
  return work;
}

}  // namespace

KernelRates kernel_rates(const LinkedTrace& linked, const KernelRecord& captured,
                         int64_t captured_steps, int cuda_device) {
  std::map<std::string, std::vector<double>> runs;  // seconds, by whole name
  for (const TracedKernel& kernel : captured.kernels)
    if (!kernel.copies && kernel.cuda_device == cuda_device)
      runs[kernel.name].push_back(kernel.end - kernel.start);
  const auto launched = work_of_launches(linked, cuda_device);
  std::map<std::string, Sum> sums;
  for (const auto& [name, seconds] : runs) {
    Sum& sum = sums[short_kernel_name(name)];
    for (const double one : seconds) sum.seconds += one;
    sum.captured += static_cast<int64_t>(seconds.size());
    const auto found = launched.find(name);
    if (found == launched.end()) continue;
    sum.launches += static_cast<int64_t>(found->second.size());
    sum.known += std::ranges::count(found->second, true, &LaunchWork::known);
    const std::vector<LaunchWork> work =
        matched(found->second, linked.steps, seconds.size(), captured_steps);
    for (size_t i = 0; i < work.size(); ++i) {
      if (!work[i].known) continue;
      sum.accounted += seconds[i];
      sum.flops += work[i].flops;
      if (work[i].bytes <= 0) continue;
      sum.moving += seconds[i];
      sum.bytes += work[i].bytes;
    }
  }
  KernelRates rates;
  for (const auto& [name, sum] : sums) {
    KernelRate& rate = rates[name];
    rate.launches = sum.launches;
    rate.known = sum.known;
    rate.captured = sum.captured;
    if (sum.seconds > 0) rate.covered = sum.accounted / sum.seconds;
    if (sum.accounted <= 0 || rate.covered < least_covered) continue;
    rate.flops = sum.flops / sum.accounted;
    if (sum.moving >= least_covered * sum.accounted) rate.bytes = sum.bytes / sum.moving;
  }
  return rates;
}

}  // namespace tandem
