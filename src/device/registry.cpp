#include "device/registry.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdlib>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

// oneDNN's kernels for AMX (the processor's matrix tiles) end the program with an illegal
// instruction: `tilezero` where no tile is configured, seen with LibTorch 2.11 on a Xeon that has
// AMX, in products of half precision. It does without them unless somebody asks for them. Before
// main, as it reads this once, when something is computed first.
[[maybe_unused]] const int without_tiles =
    setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", /*overwrite=*/0);

}  // namespace

DeviceRegistry& DeviceRegistry::get() {
  // Never destroyed: worker threads and static tensors may outlive main.
  static auto* instance = new DeviceRegistry;
  return *instance;
}

DeviceRegistry::DeviceRegistry()
    : cpu_(std::make_unique<LogicalDevice>(
          LogicalDeviceInfo{.kind = DeviceKind::cpu, .hardware = "CPU"})) {}

void DeviceRegistry::configure(GpuProbe probe, std::vector<LogicalDeviceInfo> gpus, bool dual) {
  probe_ = std::move(probe);
  gpus_.clear();
  bool any_simulated = false;
  for (LogicalDeviceInfo& info : gpus) {
    any_simulated |= info.kind == DeviceKind::simulated;
    gpus_.push_back(std::make_unique<LogicalDevice>(std::move(info)));
  }
  configured_ = true;
  dual_ = dual;
  if (!gpus_.empty()) install_ledgers();
  if (any_simulated) {
    count_operations(true);
    // Each simulated device is one worker, as a GPU is: its work does not spread over the host's
    // cores.
    at::set_num_threads(1);
  }
}

LogicalDevice& DeviceRegistry::find(const std::string& name) {
  std::string plain = lower(name);
  if (plain.starts_with("/")) plain.erase(0, 1);
  if (plain == "cpu" || plain == "cpu:0") return *cpu_;
  if (plain.starts_with("gpu:")) {
    const auto index = parse_int(plain.substr(4));
    if (index && *index >= 0 && *index < static_cast<int64_t>(gpus_.size())) {
      return *gpus_[static_cast<size_t>(*index)];
    }
  }
  throw Error(ErrorKind::device,
              fmt::format("there is no device `{}`: this process has /CPU:0 and {} GPUs{}", name,
                          gpus_.size(), configured_ ? "" : ", none configured yet"))
      .hint("`tandem devices` lists them");
}

void DeviceRegistry::note_use(const LogicalDevice& device) {
  if (used_.load(std::memory_order_acquire) || device.kind() == DeviceKind::cpu) return;
  std::lock_guard lock(mutex_);
  if (first_use_.empty())
    first_use_ = fmt::format("work that began on {} ({})", device.name(), device.info().hardware);
  used_ = true;
}

std::string DeviceRegistry::first_use() const {
  std::lock_guard lock(mutex_);
  return first_use_;
}

}  // namespace tandem
