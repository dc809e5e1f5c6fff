// How much work the kernels of a GPU are. A captured pass says nothing of what launched its
// kernels, so the same work is traced twice: once as it is, where every kernel is linked to the
// operation of the host that launched it and whose floating-point operations and bytes are known,
// and once captured, which gives the times. The two are brought together by the kernels' names.
//
// A kernel's figures are told only where every launch of it is accounted for and both traces have
// as many of it a step; otherwise nothing is said of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tandem {

struct KernelRecord;
struct OperationRecord;

// Steps that ran as they are. Both must have been traced together, the kernels' trace linked.
struct LinkedTrace {
  const OperationRecord& operations;
  const KernelRecord& kernels;
  int64_t steps = 1;
};

struct KernelRate {
  double flops = 0, bytes = 0;  // a second, while it runs; 0: not known
};
using KernelRates = std::map<std::string, KernelRate>;  // by short_kernel_name

// Of the kernels of `captured`; for each the first of `linked` that fits is taken.
KernelRates kernel_rates(const std::vector<LinkedTrace>& linked, const KernelRecord& captured,
                         int64_t captured_steps, int cuda_device);

}  // namespace tandem
