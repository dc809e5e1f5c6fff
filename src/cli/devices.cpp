#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/session.h"
#include "device/candidates.h"
#include "device/torch_errors.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

template <class T>
std::string or_dash(const std::optional<T>& value, const char* unit) {
  return value ? fmt::format("{:.0f}{}", static_cast<double>(*value), unit) : "-";
}

std::string peers_of(const GpuInfo& gpu) {
  std::vector<std::string> names;
  for (int peer : gpu.peers) {
    const bool nvlink =
        std::find(gpu.nvlinks.begin(), gpu.nvlinks.end(), peer) != gpu.nvlinks.end();
    names.push_back(fmt::format("{}{}", peer, nvlink ? " (NVLink)" : ""));
  }
  return names.empty() ? "-" : join(names, ", ");
}

std::string first_line(const GpuProbe& probe) {
  const TorchVersions torch = torch_versions();
  const std::string library =
      fmt::format("LibTorch {}{}", torch.torch,
                  torch.cuda.empty() ? " without CUDA" : " for CUDA " + torch.cuda);
  if (probe.source == "simulated") return library + "; simulated devices\n";
  if (probe.source == "none") return library + "; neither NVML nor a CUDA driver\n";
  return fmt::format("{}; driver {}, serves CUDA {}; seen through {}\n", library,
                     probe.driver_version.empty() ? "of unknown version" : probe.driver_version,
                     probe.cuda_version, probe.source);
}

void print_table(const GpuProbe& probe) {
  std::string text = first_line(probe);
  if (probe.gpus.empty()) {
    print(text + "no GPU: everything runs on the CPU (try --simulate-gpus 2)");
    return;
  }
  constexpr auto row = "{:<5} {:<28} {:>22} {:>5} {:>6} {:>7} {:>5}  {}\n";
  text += fmt::format(row, "index", "name", "memory used / total", "util", "temp", "power", "arch",
                      "peers");
  for (const GpuInfo& gpu : probe.gpus) {
    const std::string memory =
        fmt::format("{} / {}", format_bytes(gpu.memory_used), format_bytes(gpu.memory_total));
    text +=
        fmt::format(row, gpu.index, gpu.name, memory, or_dash(gpu.utilisation, "%"),
                    or_dash(gpu.temperature, " C"), or_dash(gpu.power, " W"),
                    gpu.compute_capability.empty() ? "-" : gpu.compute_capability, peers_of(gpu));
  }
  print(text);
}

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

void print_json(const GpuProbe& probe) {
  const TorchVersions torch = torch_versions();
  nlohmann::ordered_json document = {{"source", probe.source},
                                     {"driver", probe.driver_version},
                                     {"driver_cuda", probe.cuda_version},
                                     {"libtorch", torch.torch},
                                     {"libtorch_cuda", torch.cuda},
                                     {"gpus", nlohmann::ordered_json::array()}};
  for (const GpuInfo& gpu : probe.gpus) {
    document["gpus"].push_back({{"index", gpu.index},
                                {"name", gpu.name},
                                {"uuid", gpu.uuid},
                                {"pci_bus", gpu.pci_bus},
                                {"memory_total", gpu.memory_total},
                                {"memory_used", gpu.memory_used},
                                {"utilisation", or_null(gpu.utilisation)},
                                {"temperature", or_null(gpu.temperature)},
                                {"power", or_null(gpu.power)},
                                {"compute_capability", gpu.compute_capability},
                                {"peers", gpu.peers},
                                {"nvlinks", gpu.nvlinks},
                                {"mig_parent", or_null(gpu.mig_parent)}});
  }
  print(document.dump(2));
}

}  // namespace

Command devices_command() {
  return {.name = "devices",
          .summary = "the GPUs this process sees",
          .rest = "",
          .details = "Asks NVML (or the driver, in a child process): no CUDA context is created.",
          .settings = 0,
          .chooses_devices = true,
          .options = {{"--json", "", "one JSON document"}},
          .run = [](const Arguments& arguments) {
            const Candidates candidates = find_candidates(device_request(arguments));
            arguments.has("--json") ? print_json(candidates.probe) : print_table(candidates.probe);
            return 0;
          }};
}

}  // namespace tandem
