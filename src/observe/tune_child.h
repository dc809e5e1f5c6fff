// A program run under watch: it gets so much host memory and so much time, and when it takes more,
// or when we are asked to stop, it and all it started are ended. Whatever happens, it is gone when
// the call returns; should this process be killed meanwhile, the kernel ends the program with it.
//
// Call it from the main thread: the kernel ties the program's life to the thread that started it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct ChildLimits {
  double seconds = 60;
  uint64_t host_bytes = 0;  // of the program and all it started, resident; 0: no limit
};

struct ChildEnd {
  enum class How { exited, signalled, over_memory, over_time, stopped };
  How how = How::exited;
  int code = 0;    // exited
  int signal = 0;  // signalled
  std::string output, errors;
  double seconds = 0;
  uint64_t host_peak = 0;  // resident bytes, as often as they were looked at
};

// `words[0]` is a path. Stops early on stop_requested(). Throws Error(internal) where no process
// can be made.
ChildEnd run_limited_child(const std::vector<std::string>& words, const ChildLimits& limits);

// What a probe may take of the host without hurting anybody: 85 % of what is available, less where
// a control group allows less.
uint64_t host_memory_to_spare();

}  // namespace tandem
