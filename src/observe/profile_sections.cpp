#include "observe/profile_sections.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <exception>
#include <thread>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr size_t most_operations = 200000;          // of a thread
constexpr size_t most_linked_operations = 2000000;  // there all must be seen

}  // namespace

void on_every_rank(const std::vector<ProfiledReplica>& replicas,
                   const std::function<void(size_t)>& work,
                   const std::function<void(size_t)>& failed) {
  std::vector<std::exception_ptr> failures(replicas.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < replicas.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        pthread_setname_np(pthread_self(), fmt::format("replica-{}", rank).c_str());
        DeviceScope scope(*replicas[rank].device);
        work(rank);
      } catch (...) {
        failures[rank] = std::current_exception();
        if (failed) failed(rank);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::exception_ptr peer;
  for (const std::exception_ptr& failure : failures) {
    if (!failure) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::peer) throw;
      peer = failure;
    }
  }
  if (peer) std::rethrow_exception(peer);
}

bool any_cuda(const std::vector<ProfiledReplica>& replicas) {
  return std::ranges::any_of(
      replicas, [](const ProfiledReplica& one) { return one.device->kind() == DeviceKind::cuda; });
}

void note_memory(Profile& profile, size_t rank, const char* rest) {
  ProfiledReplica& found = profile.replicas[rank];
  const auto see = [&](uint64_t used, uint64_t from) {
    found.most_used = std::max(found.most_used, used);
    if (used > from) found.largest_rise = std::max(found.largest_rise, used - from);
  };
  uint64_t lowest = UINT64_MAX;
  for (const auto* steps : {&found.timed, &found.traced}) {
    for (const RecordedStep& step : *steps) {
      lowest = std::min(lowest, step.used);
      for (const RecordedPart& part : step.parts) see(part.used, step.used);
    }
  }
  for (const TracedOperation& operation : profile.operations.operations)
    if (operation.device == found.device) see(operation.used, lowest);
  uint64_t known = 0;
  for (const auto& [name, bytes] : found.memory) known += bytes;
  if (lowest != UINT64_MAX && lowest > known) found.memory.emplace_back(rest, lowest - known);
}

int64_t settle_steps(const Settling& settling, const std::function<int64_t()>& unsettled,
                     const std::function<void(int64_t steps)>& take) {
  const auto start = Clock::now();
  int64_t steps = 0;
  for (bool quiet = false;
       !quiet && steps < settling.most_steps && seconds_since(start) < settling.most_seconds;) {
    const int64_t before = unsettled();
    take(settling.quiet);
    steps += settling.quiet;
    quiet = unsettled() == before;
  }
  return steps;
}

double seconds_of_work(bool cuda, bool whole_program) {
  if (cuda) return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  timespec now{};
  clock_gettime(whole_program ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

ProfileCost cost_of(const CostRounds& rounds) {
  ProfileCost cost;
  const auto fastest = [&](std::vector<double> seconds) {
    std::ranges::sort(seconds);
    if (seconds.size() > 1 && seconds[0] > 0)
      cost.noise = std::max(cost.noise, seconds[1] / seconds[0] - 1);
    return seconds.empty() ? 0 : seconds.front();
  };
  cost.plain = fastest(rounds.plain);
  cost.timed = fastest(rounds.timed);
  cost.traced = fastest(rounds.traced);
  return cost;
}

ProfileCost measure_cost(int64_t rounds, bool cuda, Clock::time_point origin,
                         const std::function<double(bool)>& again) {
  if (rounds == 0) return {};
  again(false);
  CostRounds all;
  const std::array<std::function<void()>, 3> kinds = {
      [&] { all.plain.push_back(again(false)); }, [&] { all.timed.push_back(again(true)); },
      [&] {
        DoubleTrace trace(cuda, /*linked=*/false, origin);
        all.traced.push_back(again(true));
        OperationRecord operations;
        KernelRecord kernels;
        trace.stop(operations, kernels);
      }};
  const auto enough = [&](int64_t done) {
    return done >= 2 * rounds || (done >= rounds && cost_of(all).told());
  };
  for (int64_t round = 0; !enough(round); ++round)
    for (size_t i = 0; i < kinds.size(); ++i)
      kinds[(static_cast<size_t>(round) + i) % kinds.size()]();
  return cost_of(all);
}

DoubleTrace::DoubleTrace(bool cuda, bool linked, Clock::time_point origin)
    : cuda_(cuda),
      operations_(origin, linked ? most_linked_operations : most_operations),
      kernels_(origin) {
  if (cuda_) kernels_.start(linked);
  operations_.start();
}

void DoubleTrace::stop(OperationRecord& operations, KernelRecord& kernels) {
  operations = operations_.stop();
  if (cuda_) kernels = kernels_.stop();
}

}  // namespace tandem
