// Choosing devices. Call `early_gpu_configuration` (or `configure_devices`) once, right after the
// command line is read and before anything touches a GPU; then ask for a strategy and for device
// contexts.
//
//   if (!early_gpu_configuration(2, 3)) return 1;            // data on GPU 2, model on GPU 3
//   auto model_place = get_device_context("/GPU:1");         // after the remap: data is /GPU:0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct DeviceRequest {
  std::optional<std::string> data_gpu;   // an index among the visible GPUs
  std::optional<std::string> model_gpu;  // one index, or several: "1,2,3"
  std::optional<std::string>
      visible_gpus;  // "0,1" or UUIDs; none: all that CUDA_VISIBLE_DEVICES leaves
  bool multi_gpu = false;
  std::optional<int> simulate_gpus;         // that many simulated devices instead of real ones
  int split_gpu = 0;                        // that many logical devices of one real GPU
  bool memory_isolation = false;            // the two limits below are hard
  std::optional<int64_t> data_gpu_memory;   // MB
  std::optional<int64_t> model_gpu_memory;  // MB
};

enum class DeviceOutcome {
  plain,       // no data/model split was asked for; the visible devices are set
  dual,        // one data device, one or more model devices, remapped
  dual_failed  // it was asked for and cannot be had; the reason has been printed
};

// Counts GPUs without a CUDA context, checks the request, sets the visible devices and memory
// growth, and prints the contract's lines. Throws Error(config or device) for a request that makes
// no sense.
DeviceOutcome configure_devices(const DeviceRequest& request);

// The same for two indices. True: dual mode is configured. False: it is not (the reason was
// printed, or no index was given).
bool early_gpu_configuration(std::optional<int> data_gpu = {}, std::optional<int> model_gpu = {});

enum class StrategyKind { cpu, one_device, mirrored, dual };

struct Strategy {
  StrategyKind kind = StrategyKind::cpu;
  std::vector<std::string> replicas;  // devices that hold the model, "/GPU:1"; never empty
  std::string data_device;            // where batches are prepared
  std::string describe() const;       // "mirrored over /gpu:0, /gpu:1"
};

// No GPU: the CPU. One: that one. More: all of them, mirrored, when enabled, else the first alone.
// After a dual configuration: its data device and model devices.
Strategy setup_gpu_strategy(bool enable_multi_gpu);

// The rule above on its own, for `gpus` visible ones.
Strategy choose_strategy(int gpus, bool enable_multi_gpu);

// While it lives, this thread works on the device: the one named, else /GPU:0, else /CPU:0.
class DeviceContext {
 public:
  explicit DeviceContext(const std::optional<std::string>& device);
  ~DeviceContext();
  DeviceContext(DeviceContext&&) = delete;
  const std::string& device() const { return name_; }

 private:
  struct Scope;
  std::string name_;
  std::unique_ptr<Scope> scope_;
};
DeviceContext get_device_context(const std::optional<std::string>& device = {});

}  // namespace tandem
