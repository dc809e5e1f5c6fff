// Where the many threads that read and decode may run: on a machine with cores to spare they keep
// off some of them, which stay free for the threads that launch work on GPUs. A launch that comes
// late costs more than a decoder that has one core less.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// CPUs this process may use, in order.
std::vector<int> allowed_cpus();
// Those of them for workers: all but an eighth, at least one, where there are four or more.
std::vector<int> cpus_for_workers(const std::vector<int>& allowed);

// Names the calling thread (15 characters at most) and moves it to the CPUs for workers.
void enter_worker_thread(const std::string& name);

}  // namespace tandem
