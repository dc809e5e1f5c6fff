// Made-up traces whose every figure is known, of kernels on the GPU numbered `traced_gpu`.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "observe/profile_attribution.h"
#include "observe/profile_kernels.h"
#include "observe/profile_operations.h"

namespace tandem::tests {

inline constexpr int traced_gpu = 2;

// A trace of one thread: operations one after another, and what Kineto says of them.
class MadeTrace {
 public:
  MadeTrace() {
    operations.threads = {"replica-0"};
    operations.thread_ids = {4711};
    operations.thread_numbers = {5};
  }
  // Returns its order.
  int64_t operation(const std::string& name, double flops, double bytes, int64_t parent = -1) {
    const auto order = static_cast<int64_t>(operations.operations.size());
    const auto found = std::ranges::find(operations.names, name);
    const auto place = static_cast<uint32_t>(found - operations.names.begin());
    if (found == operations.names.end()) operations.names.push_back(name);
    operations.operations.push_back({.name = place,
                                     .thread = 0,
                                     .flops = flops,
                                     .bytes = bytes,
                                     .order = order,
                                     .parent = parent});
    kernels.launches.push_back({name, 5, number(order)});
    return order;
  }
  void convolves(int64_t operation, double bytes) {
    operations.operations[static_cast<size_t>(operation)].convolved = bytes;
  }
  void kernel(const std::string& name, double seconds, int64_t launched_by,
              int device = traced_gpu) {
    const double start = kernels.kernels.empty() ? 0 : kernels.kernels.back().end;
    kernels.kernels.push_back({.name = name,
                               .cuda_device = device,
                               .start = start,
                               .end = start + seconds,
                               .launch = launched_by < 0 ? 0 : number(launched_by)});
  }
  LinkedTrace trace(int64_t steps = 1) const { return {operations, kernels, steps}; }
  static uint64_t number(int64_t order) { return 900 + static_cast<uint64_t>(order); }

  OperationRecord operations;
  KernelRecord kernels;
};

// The captured trace: kernels alone.
inline KernelRecord captured_kernels(const std::vector<std::pair<std::string, double>>& kernels) {
  MadeTrace made;
  for (const auto& [name, seconds] : kernels) made.kernel(name, seconds, -1);
  return made.kernels;
}

}  // namespace tandem::tests
