#include "observe/device_load.h"

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <mutex>
#include <set>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/registry.h"
#include "util/threads.h"

namespace tandem {
namespace {

double process_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds in which a thread of ours ran or would have run, had a core been free: a device that
// shares its host is not less busy for it. -1 when the kernel does not tell.
double thread_seconds(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/schedstat", thread));
  double ran = 0, waited = 0;  // nanoseconds
  return file >> ran >> waited ? 1e-9 * (ran + waited) : -1;
}

// Threads that were seen to run operations for a device.
class WorkingThreads {
 public:
  static WorkingThreads& get() {
    static auto* instance = new WorkingThreads;  // operations may outlive main
    return *instance;
  }
  void note(const LogicalDevice* device) {
    thread_local const LogicalDevice* noted = nullptr;
    if (noted == device) return;
    noted = device;
    const std::lock_guard lock(mutex_);
    threads_[device].insert(gettid());
  }
  std::set<pid_t> of(const LogicalDevice* device) {
    const std::lock_guard lock(mutex_);
    return threads_[device];
  }

 private:
  std::mutex mutex_;
  std::map<const LogicalDevice*, std::set<pid_t>> threads_;
};

std::unique_ptr<at::ObserverContext> note_thread(const at::RecordFunction&) {
  if (const LogicalDevice* device = DeviceScope::current()) WorkingThreads::get().note(device);
  return nullptr;
}

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t host_bytes() {
  struct sysinfo info {};
  return sysinfo(&info) == 0 ? uint64_t{info.totalram} * info.mem_unit : 0;
}

const GpuInfo* hardware_of(const LogicalDevice& device) {
  const std::vector<GpuInfo>& gpus = DeviceRegistry::get().probe().gpus;
  if (gpus.size() == 1) return &gpus.front();  // whole, or split
  const auto index = static_cast<size_t>(device.original_index());
  return index < gpus.size() ? &gpus[index] : nullptr;
}

}  // namespace

GpuDriverLoad::GpuDriverLoad(const std::string& library) : nvml_(library) {
  for (const NvmlGpu& gpu : nvml_.gpus())
    if (const std::string uuid = gpu.uuid(); !uuid.empty()) gpus_.emplace(uuid, gpu);
}

double GpuDriverLoad::utilisation(const std::string& uuid) const {
  const auto found = gpus_.find(uuid);
  const auto share = found == gpus_.end() ? std::nullopt : found->second.utilisation();
  return share ? share->units : -1;
}

struct DeviceLoad::Watched {
  LogicalDevice* device = nullptr;
  std::string uuid;
  uint64_t limit = 0;
  double workers = 1;              // seconds of work a second when fully busy
  std::map<pid_t, double> worked;  // seconds of each thread at the last reading; 0: the process

  double busy_share(double passed) {
    std::map<pid_t, double> now;
    if (device->kind() == DeviceKind::cpu) {
      now[0] = process_seconds();
    } else {
      for (const pid_t thread : WorkingThreads::get().of(device))
        if (const double seconds = thread_seconds(thread); seconds >= 0) now[thread] = seconds;
    }
    const bool comparable = !worked.empty() && !now.empty() && passed > 0;
    double sum = 0;
    for (const auto& [thread, seconds] : now)
      if (const auto before = worked.find(thread); before != worked.end())
        sum += seconds - before->second;
    worked = std::move(now);
    return comparable ? std::clamp(sum / passed / workers, 0.0, 1.0) : -1;
  }
};

DeviceLoad::DeviceLoad(std::vector<LogicalDevice*> devices) {
  for (LogicalDevice* device : devices) {
    auto watched = std::make_unique<Watched>();
    watched->device = device;
    watched->limit = device->memory().limit();
    if (device->kind() == DeviceKind::cpu) {
      watched->workers = static_cast<double>(std::max<size_t>(1, allowed_cpus().size()));
      watched->limit = host_bytes();
    } else if (device->kind() == DeviceKind::simulated) {
      // A slowed device sleeps for the rest of the time that its work is meant to take.
      watched->workers = 1 / std::max(1.0, device->info().slowness);
      device->compute_stream().run([device] { WorkingThreads::get().note(device); });
      if (!observer_) {
        observer_ = at::addGlobalCallback(
            at::RecordFunctionCallback(note_thread).scopes({at::RecordScope::FUNCTION}));
      }
    } else if (const GpuInfo* hardware = hardware_of(*device)) {
      watched->uuid = hardware->uuid;
      if (watched->limit == 0) watched->limit = hardware->memory_total;
      if (!driver_) driver_ = std::make_unique<GpuDriverLoad>(nvml_library());
    }
    devices_.push_back(std::move(watched));
  }
}

DeviceLoad::~DeviceLoad() {
  if (observer_) at::removeCallback(*observer_);
}

std::vector<DeviceReading> DeviceLoad::read() {
  const double passed = seconds_since(last_);
  last_ = Clock::now();
  std::vector<DeviceReading> readings;
  for (const auto& watched : devices_) {
    const DeviceKind kind = watched->device->kind();
    DeviceReading reading{
        .name = watched->device->name(),
        .used = kind == DeviceKind::cpu ? resident_bytes() : watched->device->memory().used(),
        .limit = watched->limit};
    if (kind == DeviceKind::cuda) {
      if (driver_) reading.utilisation = driver_->utilisation(watched->uuid);
    } else {
      reading.utilisation = watched->busy_share(passed);
    }
    readings.push_back(std::move(reading));
  }
  return readings;
}

std::vector<LogicalDevice*> devices_to_watch() {
  DeviceRegistry& registry = DeviceRegistry::get();
  std::vector<LogicalDevice*> devices;
  for (const auto& gpu : registry.gpus()) devices.push_back(gpu.get());
  if (devices.empty()) devices.push_back(&registry.cpu());
  return devices;
}

}  // namespace tandem
