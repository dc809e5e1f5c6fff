#include "observe/nvml_reader.h"

#include <array>
#include <utility>

namespace tandem {
namespace {

constexpr unsigned temperature_gpu = 0, clock_sm = 1, clock_memory = 2;
constexpr unsigned pcie_sent = 0, pcie_received = 1;

std::string text_of(const NvmlGpu& gpu, const char* function) {
  std::array<char, 96> buffer{};
  const int status = gpu.call(function, buffer.data(), static_cast<unsigned>(buffer.size()));
  return status == NvmlReader::success ? std::string(buffer.data()) : std::string();
}

// NVML counts milliwatts and kilobytes.
std::optional<double> watts(std::optional<unsigned> value) {
  return value ? std::optional<double>(*value / 1000.0) : std::nullopt;
}
std::optional<double> bytes(std::optional<unsigned> value) {
  return value ? std::optional<double>(*value * 1000.0) : std::nullopt;
}

}  // namespace

std::string NvmlGpu::name() const { return text_of(*this, "nvmlDeviceGetName"); }
std::string NvmlGpu::uuid() const { return text_of(*this, "nvmlDeviceGetUUID"); }

std::optional<NvmlGpu::Utilisation> NvmlGpu::utilisation() const {
  std::array<unsigned, 2> percent{};
  if (call("nvmlDeviceGetUtilizationRates", percent.data()) != NvmlReader::success)
    return std::nullopt;
  return Utilisation{.units = percent[0] / 100.0, .bus = percent[1] / 100.0};
}

std::optional<NvmlGpu::Memory> NvmlGpu::memory() const {
  std::array<unsigned long long, 3> sizes{};  // all, free, used
  if (call("nvmlDeviceGetMemoryInfo", sizes.data()) != NvmlReader::success) return std::nullopt;
  return Memory{.total = sizes[0], .used = sizes[2]};
}

std::optional<double> NvmlGpu::power() const { return watts(number("nvmlDeviceGetPowerUsage")); }
std::optional<double> NvmlGpu::power_limit() const {
  return watts(number("nvmlDeviceGetEnforcedPowerLimit"));
}

std::optional<unsigned> NvmlGpu::temperature() const {
  return number("nvmlDeviceGetTemperature", temperature_gpu);
}
std::optional<unsigned> NvmlGpu::clock() const {
  return number("nvmlDeviceGetClockInfo", clock_sm);
}
std::optional<unsigned> NvmlGpu::most_clock() const {
  return number("nvmlDeviceGetMaxClockInfo", clock_sm);
}
std::optional<unsigned> NvmlGpu::memory_clock() const {
  return number("nvmlDeviceGetClockInfo", clock_memory);
}

std::optional<uint64_t> NvmlGpu::clock_reasons() const {
  unsigned long long mask = 0;
  // The first is the newer name of the second.
  for (const char* function :
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"})
    if (call(function, &mask) == NvmlReader::success) return mask;
  return std::nullopt;
}

std::optional<double> NvmlGpu::received() const {
  return bytes(number("nvmlDeviceGetPcieThroughput", pcie_received));
}
std::optional<double> NvmlGpu::sent() const {
  return bytes(number("nvmlDeviceGetPcieThroughput", pcie_sent));
}

NvmlReader::NvmlReader(const std::string& library)
    : library_(std::make_unique<SharedLibrary>(library)),
      symbols_([this](const char* name) {
        return reinterpret_cast<void*>(library_->find<int()>(name));
      }),
      open_(call("nvmlInit_v2") == success) {}

NvmlReader::NvmlReader(NvmlSymbols symbols)
    : symbols_(std::move(symbols)), open_(call("nvmlInit_v2") == success) {}

NvmlReader::~NvmlReader() {
  if (open_) call("nvmlShutdown");
}

std::vector<NvmlGpu> NvmlReader::gpus() const {
  std::vector<NvmlGpu> all;
  unsigned count = 0;
  if (open_) call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    void* handle = nullptr;
    if (call("nvmlDeviceGetHandleByIndex_v2", i, &handle) == success)
      all.push_back(NvmlGpu(*this, handle));
  }
  return all;
}

std::optional<NvmlGpu> NvmlReader::find(const std::string& uuid) const {
  void* handle = nullptr;
  if (!open_ || call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &handle) != success)
    return std::nullopt;
  return NvmlGpu(*this, handle);
}

}  // namespace tandem
