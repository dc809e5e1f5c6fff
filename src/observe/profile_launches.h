// How much work each launch of a kernel was, from a trace that links kernels to operations.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "observe/profile_attribution.h"

namespace tandem {

struct LaunchWork {
  bool known = false;
  double flops = 0, bytes = 0;  // 0: none, or not known
  bool operator==(const LaunchWork&) const = default;
};

// By the whole name of a kernel, in the order in which they ran on the device.
//
// Arithmetic of an operation that launched several kernels is that of the one that is no helper
// (which adds up partial sums, converts or fills), or that takes nearly all of their time; else it
// is nobody's. Bytes are known of an operation whose work one kernel does, and of the kernels that
// change the layout of a convolution's tensors where there is one for each of these: together they
// read and write all of them, and each gets of that as much as of their time.
std::map<std::string, std::vector<LaunchWork>> work_of_launches(const LinkedTrace& trace,
                                                                int cuda_device);

}  // namespace tandem
