// Every tensor operation of the process while it is on: which, on which thread and device, from
// when to when, and how many bytes and floating-point operations it stands for. Where operations
// are only launched (a GPU) these are the times of the launches; what a captured pass replays is
// not seen here at all, but by KernelTrace.
//
// One at a time in a process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "util/clock.h"

namespace tandem {

class LogicalDevice;

struct TracedOperation {
  uint32_t name = 0, thread = 0;  // places in OperationRecord's lists
  LogicalDevice* device = nullptr;
  double start = 0, end = 0;    // seconds since the origin
  double self = 0;              // seconds, without the operations inside
  double flops = 0, bytes = 0;  // 0: not known, or none
  // Of a convolution's backward pass: bytes of its inputs and outputs, those of the gradient it
  // reads for both of its results twice. What it calls (a sum, for the bias) does not count.
  double convolved = 0;
  uint64_t used = 0;  // bytes the device held when it ended
  // Of its thread, counted from 0 as they began; `parent`: which one called it, -1: none.
  int64_t order = 0, parent = -1;
};

struct OperationRecord {
  std::vector<std::string> names;           // "aten::mm"
  std::vector<std::string> threads;         // as the system names them: "feed-0", "thread 4711"
  std::vector<uint64_t> thread_ids;         // the system's
  std::vector<uint64_t> thread_numbers;     // LibTorch's
  std::vector<TracedOperation> operations;  // by thread, then in the order they ended
  uint64_t dropped = 0;                     // beyond the most that are kept
};

class OperationTrace {
 public:
  // Seconds count from `origin`; at most `most` operations of a thread are kept.
  explicit OperationTrace(Clock::time_point origin, size_t most = 200000);
  ~OperationTrace();
  OperationTrace(const OperationTrace&) = delete;
  OperationTrace& operator=(const OperationTrace&) = delete;

  void start();
  // Threads that record must have stopped or be between operations; what is under way is not kept.
  OperationRecord stop();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tandem
