// How much work the kernels of a GPU are. A captured pass says nothing of what launched its
// kernels, so the same work is traced twice: once as it is, where every kernel is linked to the
// operation of the host that launched it and whose floating-point operations and bytes are known,
// and once captured, which gives the times. The two are brought together by the kernels' names and
// the order in which kernels of one name ran.
//
// A kernel's figures are those of its launches that are accounted for, and are told where these
// take most of its time; otherwise nothing is said of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

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
  double covered = 0;           // share of its time of which they tell
  // Of the linked trace, of those the ones whose work is known, and of the captured trace: why
  // nothing is told, where nothing is.
  int64_t launches = 0, known = 0, captured = 0;
  bool told() const { return flops > 0 || bytes > 0; }
};
using KernelRates = std::map<std::string, KernelRate>;  // by short_kernel_name

// Of all kernels of `captured`.
KernelRates kernel_rates(const LinkedTrace& linked, const KernelRecord& captured,
                         int64_t captured_steps, int cuda_device);

}  // namespace tandem
