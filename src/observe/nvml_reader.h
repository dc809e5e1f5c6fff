// NVIDIA's management library (NVML), opened at run time: the GPUs it knows and their figures. No
// CUDA context is made, so nothing is taken from those who work on them.
//
//   const NvmlReader nvml;
//   for (const NvmlGpu& gpu : nvml.gpus()) … gpu.utilisation() …
//
// Constants and structures are those of its stable C interface (NVML API reference, CUDA 13),
// written out so that no NVIDIA header is needed to build.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/shared_library.h"

namespace tandem {

// A function of NVML by its name, nullptr for one the library does not have.
using NvmlSymbols = std::function<void*(const char*)>;

class NvmlReader;

// What has no value could not be asked: an older driver, a card without the feature, a MIG
// instance. The reader must outlive it.
class NvmlGpu {
 public:
  std::string name() const;  // "NVIDIA H200"; empty: not known
  std::string uuid() const;
  struct Utilisation {
    double units = 0, bus = 0;  // of the multiprocessors, of the memory's bus: 0 to 1
  };
  std::optional<Utilisation> utilisation() const;
  struct Memory {
    uint64_t total = 0, used = 0;  // bytes
  };
  std::optional<Memory> memory() const;
  std::optional<double> power() const, power_limit() const;  // watts
  std::optional<unsigned> temperature() const;               // degrees Celsius
  std::optional<unsigned> clock() const, most_clock() const, memory_clock() const;  // MHz
  std::optional<uint64_t> clock_reasons() const;         // NVML's bits of what decides the clocks
  std::optional<double> received() const, sent() const;  // bytes a second over PCIe, of 20 ms
  // Any other call whose first argument is the GPU: its status, 0 for success.
  template <class... Args>
  int call(const char* function, Args... args) const;
  // One that answers with a number, behind `args`.
  template <class... Args>
  std::optional<unsigned> number(const char* function, Args... args) const;

 private:
  friend class NvmlReader;
  NvmlGpu(const NvmlReader& nvml, void* handle) : nvml_(&nvml), handle_(handle) {}
  const NvmlReader* nvml_;
  void* handle_;
};

class NvmlReader {
 public:
  explicit NvmlReader(const std::string& library = nvml_library());
  explicit NvmlReader(NvmlSymbols symbols);  // in place of a library
  ~NvmlReader();
  NvmlReader(const NvmlReader&) = delete;
  NvmlReader& operator=(const NvmlReader&) = delete;

  // In PCI order; none where there is no driver.
  std::vector<NvmlGpu> gpus() const;
  // A GPU or a MIG instance.
  std::optional<NvmlGpu> find(const std::string& uuid) const;

  static constexpr int success = 0, missing = SharedLibrary::missing;
  template <class... Args>
  int call(const char* function, Args... args) const {
    auto* found = reinterpret_cast<int (*)(Args...)>(symbols_(function));
    return found ? found(args...) : missing;
  }

 private:
  std::unique_ptr<SharedLibrary> library_;
  NvmlSymbols symbols_;
  bool open_ = false;
};

template <class... Args>
int NvmlGpu::call(const char* function, Args... args) const {
  return nvml_->call(function, handle_, args...);
}

template <class... Args>
std::optional<unsigned> NvmlGpu::number(const char* function, Args... args) const {
  unsigned value = 0;
  if (call(function, args..., &value) != NvmlReader::success) return std::nullopt;
  return value;
}

}  // namespace tandem
