#include "observe/profile_attribution.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "observe/profile_kernels.h"
#include "observe/profile_operations.h"

namespace tandem {
namespace {

constexpr double dominant = 0.8;  // of the time of an operation's kernels: that one does its work
constexpr double covered = 0.95;  // of the time of kernels of one name must be accounted for

// All of one whole name.
struct Launches {
  int64_t calls = 0, known = 0;
  double flops = 0, bytes = 0;
};
struct Runs {
  int64_t calls = 0;
  double seconds = 0;
};
struct Known {
  double seconds = 0, accounted = 0, flops = 0, bytes = 0;
};

using Place = std::pair<uint64_t, std::string>;  // LibTorch's number of a thread, a name

// Kineto's numbers of operations -> places in the record. Both saw the same operations: on each
// thread those of one name begin in the same order. Where they did not see as many, none are told.
std::unordered_map<uint64_t, size_t> joined(const OperationRecord& record,
                                            const std::vector<LaunchedOperation>& launches) {
  std::map<Place, std::vector<size_t>> ours;
  std::map<Place, std::vector<uint64_t>> theirs;
  for (size_t i = 0; i < record.operations.size(); ++i) {
    const TracedOperation& one = record.operations[i];
    if (one.thread >= record.thread_numbers.size()) return {};
    ours[{record.thread_numbers[one.thread], record.names[one.name]}].push_back(i);
  }
  for (const LaunchedOperation& one : launches)
    theirs[{one.thread, one.name}].push_back(one.number);
  std::unordered_map<uint64_t, size_t> places;
  for (auto& [place, operations] : ours) {
    const auto found = theirs.find(place);
    if (found == theirs.end() || found->second.size() != operations.size()) continue;
    std::ranges::sort(operations, {}, [&](size_t i) { return record.operations[i].order; });
    std::ranges::sort(found->second);
    for (size_t i = 0; i < operations.size(); ++i) places[found->second[i]] = operations[i];
  }
  return places;
}

// The operation whose arithmetic an operation does: itself, or the nearest that called it and is
// known to have some (a convolution is launched by what it calls).
class Callers {
 public:
  explicit Callers(const OperationRecord& record) : record_(record) {
    for (size_t i = 0; i < record.operations.size(); ++i)
      places_[key(record.operations[i].thread, record.operations[i].order)] = i;
  }
  size_t arithmetic_of(size_t operation) const {
    for (size_t at = operation;;) {
      const TracedOperation& one = record_.operations[at];
      if (one.flops > 0) return at;
      const auto parent =
          one.parent < 0 ? places_.end() : places_.find(key(one.thread, one.parent));
      if (parent == places_.end() || parent->second == at) return operation;
      at = parent->second;
    }
  }

 private:
  static uint64_t key(uint32_t thread, int64_t order) {
    return (static_cast<uint64_t>(thread) << 40) ^ static_cast<uint64_t>(order);
  }
  const OperationRecord& record_;
  std::unordered_map<uint64_t, size_t> places_;
};

double seconds_of(const TracedKernel& kernel) { return kernel.end - kernel.start; }

std::map<std::string, Launches> launches_of(const LinkedTrace& trace, int cuda_device) {
  const auto places = joined(trace.operations, trace.kernels.launches);
  const Callers callers(trace.operations);
  std::unordered_map<size_t, int64_t> kernels_of;                              // by operation
  std::unordered_map<size_t, std::pair<const TracedKernel*, double>> longest;  // by arithmetic
  std::map<std::string, Launches> all;
  const auto each = [&](const auto& visit) {
    for (const TracedKernel& kernel : trace.kernels.kernels) {
      if (kernel.copies || kernel.cuda_device != cuda_device) continue;
      const auto found = places.find(kernel.launch);
      visit(kernel, kernel.launch == 0 || found == places.end() ? nullptr : &found->second);
    }
  };
  each([&](const TracedKernel& kernel, const size_t* operation) {
    if (!operation) return;
    ++kernels_of[*operation];
    auto& [most, sum] = longest[callers.arithmetic_of(*operation)];
    sum += seconds_of(kernel);
    if (!most || seconds_of(kernel) > seconds_of(*most)) most = &kernel;
  });
  each([&](const TracedKernel& kernel, const size_t* operation) {
    Launches& sum = all[kernel.name];
    ++sum.calls;
    if (!operation) return;
    const size_t root = callers.arithmetic_of(*operation);
    const double flops = trace.operations.operations[root].flops;
    const auto& [most, seconds] = longest.at(root);
    if (flops > 0 && (most != &kernel || seconds_of(kernel) < dominant * seconds)) return;
    // Of several kernels nobody knows which moves what.
    const double bytes =
        kernels_of.at(*operation) == 1 ? trace.operations.operations[*operation].bytes : 0;
    if (flops <= 0 && bytes <= 0) return;
    ++sum.known;
    sum.flops += std::max(0.0, flops);
    sum.bytes += bytes;
  });
  return all;
}

}  // namespace

KernelRates kernel_rates(const std::vector<LinkedTrace>& linked, const KernelRecord& captured,
                         int64_t captured_steps, int cuda_device) {
  std::map<std::string, Runs> runs;
  for (const TracedKernel& kernel : captured.kernels) {
    if (kernel.copies || kernel.cuda_device != cuda_device) continue;
    Runs& run = runs[kernel.name];
    ++run.calls;
    run.seconds += seconds_of(kernel);
  }
  std::map<std::string, Known> known;  // by short name
  for (const auto& [name, run] : runs) known[short_kernel_name(name)].seconds += run.seconds;
  std::map<std::string, bool> told;
  for (const LinkedTrace& trace : linked) {
    for (const auto& [name, launches] : launches_of(trace, cuda_device)) {
      const auto found = runs.find(name);
      if (found == runs.end() || told[name] || launches.known != launches.calls) continue;
      if (launches.calls * captured_steps != found->second.calls * trace.steps) continue;
      told[name] = true;
      Known& sum = known[short_kernel_name(name)];
      const double scale = static_cast<double>(captured_steps) /
                           static_cast<double>(std::max<int64_t>(1, trace.steps));
      sum.accounted += found->second.seconds;
      sum.flops += launches.flops * scale;
      sum.bytes += launches.bytes * scale;
    }
  }
  KernelRates rates;
  for (const auto& [name, sum] : known) {
    if (sum.accounted <= 0 || sum.accounted < covered * sum.seconds) continue;
    rates[name] = {sum.flops / sum.accounted, sum.bytes / sum.accounted};
  }
  return rates;
}

}  // namespace tandem
