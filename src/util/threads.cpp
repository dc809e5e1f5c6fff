#include "util/threads.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

namespace tandem {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> cpus_for_workers(const std::vector<int>& allowed) {
  if (allowed.size() < 4) return allowed;
  const size_t spared = std::max<size_t>(1, allowed.size() / 8);
  return {allowed.begin() + static_cast<std::ptrdiff_t>(spared), allowed.end()};
}

void enter_worker_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  const std::vector<int> allowed = allowed_cpus();
  const std::vector<int> cpus = cpus_for_workers(allowed);
  if (cpus.size() == allowed.size()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // a wish; without it all runs the same
}

}  // namespace tandem
