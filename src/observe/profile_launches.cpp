#include "observe/profile_launches.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string_view>
#include <unordered_map>

#include "observe/profile_join.h"
#include "observe/profile_kernels.h"
#include "observe/profile_operations.h"

namespace tandem {
namespace {

constexpr double dominant = 0.8;  // of the time of an operation's kernels: that one does its work

// Kernels that products, convolutions and attention launch beside the one that multiplies. A
// product whose inner dimension is split ("splitK") is none, what adds up its parts is.
constexpr std::string_view helpers[] = {"elementwise", "reduce", "convert",  "tonhwc",
                                        "tonchw",      "fill",   "dot_do_o", "computeoffsets"};

bool named_one_of(const std::string& kernel, std::span<const std::string_view> words) {
  std::string name = short_kernel_name(kernel);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string::npos; });
}
bool helps(const std::string& kernel) { return named_one_of(kernel, helpers); }
// cuDNN's, before and behind a convolution that works on channels last.
bool changes_layout(const std::string& kernel) {
  constexpr std::string_view words[] = {"nchwtonhwc", "nhwctonchw"};
  return named_one_of(kernel, words);
}

double seconds_of(const TracedKernel& kernel) { return kernel.end - kernel.start; }

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

// Kernels that one operation launched, or all those whose arithmetic is that of one operation.
struct Group {
  std::vector<const TracedKernel*> kernels;

  // The one that does the work; nullptr: that cannot be told.
  const TracedKernel* worker() const {
    std::vector<const TracedKernel*> candidates;
    for (const TracedKernel* kernel : kernels)
      if (!helps(kernel->name)) candidates.push_back(kernel);
    if (candidates.empty()) candidates = kernels;
    double all = 0;
    for (const TracedKernel* kernel : candidates) all += seconds_of(*kernel);
    const TracedKernel* longest = *std::ranges::max_element(
        candidates, {}, [](const TracedKernel* kernel) { return seconds_of(*kernel); });
    return seconds_of(*longest) >= dominant * all ? longest : nullptr;
  }

  // Of one of its kernels that change layouts; 0: that cannot be told. A convolution has an input,
  // filters and an output; its backward pass has five tensors, one of which is needed twice.
  double layout_bytes(const TracedKernel& kernel, const TracedOperation& operation) const {
    double all = 0;
    int count = 0;
    for (const TracedKernel* one : kernels) {
      if (!changes_layout(one->name)) continue;
      all += seconds_of(*one);
      ++count;
    }
    const bool backward = operation.convolved > 0;
    if (count != (backward ? 6 : 3) || all <= 0) return 0;
    return 2 * (backward ? operation.convolved : operation.bytes) * seconds_of(kernel) / all;
  }
};

}  // namespace

std::map<std::string, std::vector<LaunchWork>> work_of_launches(const LinkedTrace& trace,
                                                                int cuda_device) {
  const auto places = joined_operations(trace.operations, trace.kernels.launches);
  const Callers callers(trace.operations);
  std::unordered_map<size_t, Group> by_operation, by_arithmetic;
  const auto each = [&](const auto& visit) {
    for (const TracedKernel& kernel : trace.kernels.kernels) {
      if (kernel.copies || kernel.cuda_device != cuda_device) continue;
      const auto found = places.find(kernel.launch);
      visit(kernel, kernel.launch == 0 || found == places.end() ? nullptr : &found->second);
    }
  };
  each([&](const TracedKernel& kernel, const size_t* operation) {
    if (!operation) return;
    by_operation[*operation].kernels.push_back(&kernel);
    by_arithmetic[callers.arithmetic_of(*operation)].kernels.push_back(&kernel);
  });
  std::unordered_map<size_t, const TracedKernel*> workers;  // of arithmetic
  for (const auto& [operation, group] : by_arithmetic)
    if (trace.operations.operations[operation].flops > 0) workers[operation] = group.worker();
  std::map<std::string, std::vector<LaunchWork>> all;
  each([&](const TracedKernel& kernel, const size_t* operation) {
    LaunchWork& work = all[kernel.name].emplace_back();
    if (!operation) return;
    const TracedOperation& launched_by = trace.operations.operations[*operation];
    const bool alone = by_operation.at(*operation).kernels.size() == 1;
    const size_t root = callers.arithmetic_of(*operation);
    const auto worker = workers.find(root);
    const bool works = worker != workers.end() && worker->second == &kernel;
    // What an operation with arithmetic of its own moves, its worker moves.
    const bool moves = alone || (works && root == *operation);
    if (changes_layout(kernel.name)) {
      work.bytes = by_operation.at(*operation).layout_bytes(kernel, launched_by);
    } else if (worker == workers.end() || works) {
      work.flops = works ? trace.operations.operations[root].flops : 0;
      work.bytes = moves ? launched_by.bytes : 0;
    } else if (root != *operation && helps(kernel.name)) {
      work.bytes = alone ? launched_by.bytes : 0;  // a copy, say, that an attention calls
    }
    work.known = work.flops > 0 || work.bytes > 0;
  });
  return all;
}

}  // namespace tandem
