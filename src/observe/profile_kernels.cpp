#include "observe/profile_kernels.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "device/torch_errors.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#endif

namespace tandem {
namespace {
bool is_copy(const std::string& name) {
  return name.starts_with("Memcpy") || name.starts_with("Memset");
}
}  // namespace

std::string short_kernel_name(const std::string& name) {
  if (is_copy(name)) return name;
  std::string plain = name;
  constexpr std::string_view nowhere = "(anonymous namespace)::";
  for (size_t at; (at = plain.find(nowhere)) != std::string::npos;) plain.erase(at, nowhere.size());
  std::string kept;
  int depth = 0;
  for (const char c : plain) {
    if (c == '(' && depth == 0) break;
    if (c == '>') --depth;
    if (depth == 0 && c != '<' && c != '>') kept += c;
    if (c == '<') ++depth;
  }
  // What stands before the last space is the type it returns.
  if (const size_t space = kept.rfind(' '); space != std::string::npos) kept.erase(0, space + 1);
  return kept.empty() ? name : kept;
}

KernelTrace::KernelTrace(Clock::time_point origin) : origin_(origin) {}

KernelTrace::~KernelTrace() {
  if (running_) stop();
}

#ifdef TANDEM_WITH_CUDA
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

// Kineto counts nanoseconds of the system's clock, we count steadily: one moment in both.
struct Moment {
  int64_t system_ns;
  double seconds;  // since the origin
  static Moment now(Clock::time_point origin) {
    using std::chrono::nanoseconds;
    const auto system = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<nanoseconds>(system).count(), seconds_since(origin)};
  }
  double seconds_of(uint64_t ns) const {
    return seconds + static_cast<double>(static_cast<int64_t>(ns) - system_ns) * 1e-9;
  }
};

// As OperationTrace sees them; calls of the CUDA runtime are none.
bool is_operation(const profiler::KinetoEvent& event) {
  constexpr uint8_t cpu_op = 0;  // the first of libkineto's activity types
  const auto scope = static_cast<at::RecordScope>(event.scope());
  return event.activityType() == cpu_op &&
         (scope == at::RecordScope::FUNCTION || scope == at::RecordScope::BACKWARD_FUNCTION);
}

}  // namespace

void KernelTrace::start(bool linked) {
  linked_ = linked;
  try {
    torch::profiler::impl::ExperimentalConfig more;
    more.profile_all_threads = linked;  // engines have threads of their own
    const torch::profiler::impl::ProfilerConfig config(
        torch::profiler::impl::ProfilerState::KINETO, /*report_input_shapes=*/false,
        /*profile_memory=*/false, /*with_stack=*/false, /*with_flops=*/false,
        /*with_modules=*/false, more);
    std::set<ActivityType> activities{ActivityType::CUDA};
    if (linked) activities.insert(ActivityType::CPU);
    profiler::prepareProfiler(config, activities);
    profiler::enableProfiler(config, activities);
    running_ = true;
  } catch (const std::exception& error) {
    failure_ = explain_with_torch(error).sentence;
  }
}

KernelRecord KernelTrace::stop() {
  KernelRecord record{.failure = failure_};
  if (!running_) return record;
  running_ = false;
  try {
    const auto result = profiler::disableProfiler();
    const Moment now = Moment::now(origin_);
    for (const profiler::KinetoEvent& event : result->events()) {
      if (event.deviceType() != c10::DeviceType::CUDA) {
        if (linked_ && is_operation(event))
          record.launches.push_back({event.name(), event.startThreadId(), event.correlationId()});
        continue;
      }
      const double start = now.seconds_of(event.startNs());
      const std::string name = event.name();
      record.kernels.push_back({.name = name,
                                .cuda_device = event.deviceIndex(),
                                .stream = event.deviceResourceId(),
                                .start = start,
                                .end = start + static_cast<double>(event.durationNs()) * 1e-9,
                                .bytes = static_cast<double>(std::max<int64_t>(0, event.nBytes())),
                                .copies = is_copy(name),
                                .launch = linked_ ? event.linkedCorrelationId() : 0});
    }
    std::ranges::sort(record.kernels, {}, &TracedKernel::start);
    std::ranges::sort(record.launches, {}, &LaunchedOperation::number);
  } catch (const std::exception& error) {
    record.failure = explain_with_torch(error).sentence;
  }
  return record;
}

#else
void KernelTrace::start(bool) {}
KernelRecord KernelTrace::stop() { return {}; }
#endif

}  // namespace tandem
