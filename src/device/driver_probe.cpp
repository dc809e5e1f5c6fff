// The CUDA driver as a second way to count GPUs, and what state it is in.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "device/probe.h"
#include "device/shared_library.h"

namespace tandem {
namespace {

constexpr int success = 0;
constexpr int not_initialised_error = 3;  // CUDA_ERROR_NOT_INITIALIZED
constexpr const char* driver_library = "libcuda.so.1";

std::string format_uuid(const std::array<unsigned char, 16>& bytes) {
  std::string text = "GPU-";
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

// Runs in the child: everything the driver says, as JSON.
nlohmann::json ask_driver(const std::string& library) {
  const SharedLibrary cuda(library);
  nlohmann::json answer;
  if (!cuda || cuda.call("cuInit", 0u) != success) return answer;
  int version = 0, count = 0;
  cuda.call("cuDriverGetVersion", &version);
  cuda.call("cuDeviceGetCount", &count);
  answer["cuda"] = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  answer["gpus"] = nlohmann::json::array();
  for (int i = 0; i < count; ++i) {
    int device = 0;
    if (cuda.call("cuDeviceGet", &device, i) != success) continue;
    std::array<char, 96> name{};
    std::array<unsigned char, 16> uuid{};
    size_t memory = 0;
    cuda.call("cuDeviceGetName", name.data(), static_cast<int>(name.size()), device);
    cuda.call("cuDeviceGetUuid_v2", uuid.data(), device);
    cuda.call("cuDeviceTotalMem_v2", &memory, device);
    answer["gpus"].push_back(
        {{"name", name.data()}, {"uuid", format_uuid(uuid)}, {"memory", memory}});
  }
  return answer;
}

std::string run_in_child(const std::string& library) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return "";
  }
  if (child == 0) {
    close(ends[0]);
    // All GPUs in PCI order; the visible ones are chosen afterwards, the same way as for NVML.
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    const std::string text = ask_driver(library).dump();
    [[maybe_unused]] const auto written = write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

}  // namespace

std::optional<GpuProbe> probe_with_driver(const std::string& library) {
  if (!SharedLibrary(library)) return std::nullopt;  // opening alone initialises nothing
  const auto answer = nlohmann::json::parse(run_in_child(library), nullptr, false);
  if (!answer.is_object()) return std::nullopt;
  GpuProbe probe;
  probe.source = "driver";
  probe.cuda_version = answer.value("cuda", "");
  for (const auto& entry : answer["gpus"]) {
    GpuInfo gpu;
    gpu.index = static_cast<int>(probe.gpus.size());
    gpu.name = entry.value("name", "");
    gpu.uuid = entry.value("uuid", "");
    gpu.memory_total = entry.value("memory", uint64_t{0});
    probe.gpus.push_back(gpu);
  }
  return probe;
}

DriverState cuda_driver_state() {
  const SharedLibrary cuda(driver_library, RTLD_NOW | RTLD_NOLOAD);
  if (!cuda) return DriverState::not_loaded;
  int count = 0;
  if (cuda.call("cuDeviceGetCount", &count) != success) return DriverState::not_initialised;
  for (int device = 0; device < count; ++device) {
    unsigned flags = 0;
    int active = 0;
    const int status = cuda.call("cuDevicePrimaryCtxGetState", device, &flags, &active);
    if (status != not_initialised_error && active) return DriverState::has_context;
  }
  return DriverState::initialised;
}

GpuProbe probe_gpus() {
  if (auto probe = probe_with_nvml(nvml_library())) return *probe;
  if (auto probe = probe_with_driver(library_named("TANDEM_CUDA_LIBRARY", driver_library)))
    return *probe;
  return {};
}

}  // namespace tandem
