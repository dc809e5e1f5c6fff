// Where a thread's time goes, as the kernel counts it: on a core, in line for one, asleep.
#pragma once

#include <algorithm>
#include <string>

#include "observe/diagnose/figures.h"
#include "util/clock.h"

namespace tandem {

// Of the calling thread since it began; `wall` is since an arbitrary moment. A kernel that does not
// tell how long a thread stood in line counts that as asleep.
SpentTime thread_time();

// Of all threads of this process whose name begins like that, together: those of LibTorch that run
// backward passes for a GPU are "pt_autograd_<n>", one a GPU. Opens files: not for every step.
SpentTime threads_time(const std::string& prefix);

// The three are not read at one moment: a thread that is sent away between two of them would seem
// to have stood in line for longer than it was there.
inline SpentTime operator-(const SpentTime& later, const SpentTime& earlier) {
  SpentTime spent{later.wall - earlier.wall, later.on_core - earlier.on_core, 0};
  spent.in_line =
      std::clamp(later.in_line - earlier.in_line, 0.0, std::max(0.0, spent.wall - spent.on_core));
  return spent;
}
inline SpentTime& operator+=(SpentTime& sum, const SpentTime& more) {
  sum.wall += more.wall;
  sum.on_core += more.on_core;
  sum.in_line += more.in_line;
  return sum;
}
inline SpentTime operator*(const SpentTime& time, double factor) {
  return {time.wall * factor, time.on_core * factor, time.in_line * factor};
}

// Of the whole process, seconds on cores.
double process_core_seconds();
// Of the whole machine; -1: the kernel does not tell.
double machine_core_seconds();

}  // namespace tandem
