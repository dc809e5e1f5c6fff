// What GPUs did while it is on: kernels, copies and fills with their streams and times, captured
// ones included. LibTorch's own profiler (Kineto) asks the driver for it. Without a GPU there is
// nothing to trace and nothing is said.
//
// A linked trace also tells which operation of the host launched a kernel, as far as it was not
// captured; it is dearer. Of a long one a few links are missing: the driver's records come in
// buffers of 4 MiB that Kineto reads in no particular order, and a kernel whose launch is in a
// buffer it has not read yet stays without one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "util/clock.h"

namespace tandem {

struct TracedKernel {
  std::string name;
  int cuda_device = 0;
  int64_t stream = 0;
  double start = 0, end = 0;  // seconds since the origin
  double bytes = 0;           // of a copy or a fill
  bool copies = false;        // a copy between memories, or a fill
  uint64_t launch = 0;        // of LaunchedOperation, in a linked trace; 0: not known
};

// An operation of the host as Kineto saw it. On its thread numbers grow in the order in which
// operations begin.
struct LaunchedOperation {
  std::string name;
  uint64_t thread = 0;  // LibTorch's number of it
  uint64_t number = 0;  // what TracedKernel::launch means
};

struct KernelRecord {
  std::vector<TracedKernel> kernels;        // by their start
  std::vector<LaunchedOperation> launches;  // of all threads, by number; of a linked trace
  std::string failure;                      // why there are none; empty: nothing went wrong
};

class KernelTrace {
 public:
  explicit KernelTrace(Clock::time_point origin);
  ~KernelTrace();
  KernelTrace(const KernelTrace&) = delete;
  KernelTrace& operator=(const KernelTrace&) = delete;

  // Start and stop on the same thread, the devices idle. A profiler that cannot start (no
  // permission for the counters, another one attached) is no failure of the profile: the record
  // says why.
  void start(bool linked = false);
  KernelRecord stop();

 private:
  const Clock::time_point origin_;
  bool running_ = false, linked_ = false;
  std::string failure_;
};

// "void at::native::foo<float, 4>(...)" -> "at::native::foo": instances of one kernel count
// together, and names fit a table.
std::string short_kernel_name(const std::string& name);

}  // namespace tandem
