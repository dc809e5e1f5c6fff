// Early configuration: what the user asked for, held against what the machine has, before the first
// CUDA call. The messages are the contract's (002-2 to 002-6); the whole of a complaint goes to
// standard error.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "device/candidates.h"
#include "device/registry.h"
#include "tandem/devices.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

struct Roles {
  int data = 0;
  std::vector<int> models;
};

// Nothing when the text is not one index of 0..count-1.
std::optional<int> parse_index(const std::string& text, int count) {
  const auto value = parse_int(trim(text));
  if (!value || *value < 0 || *value >= count) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<std::string> complaint_about(const DeviceRequest& request, int count, Roles& roles) {
  const auto invalid = [&](const char* name, const std::string& text) {
    return fmt::format("❌ Invalid {}={}, must be 0-{}", name, text, count - 1);
  };
  const auto data = parse_index(*request.data_gpu, count);
  if (!data) return invalid("data_gpu", *request.data_gpu);
  roles.data = *data;
  for (const std::string& entry : split(*request.model_gpu, ',')) {
    const auto model = parse_index(entry, count);
    if (!model) return invalid("model_gpu", *request.model_gpu);
    if (*model == roles.data) return "❌ data_gpu and model_gpu must be different";
    if (std::find(roles.models.begin(), roles.models.end(), *model) != roles.models.end()) {
      return fmt::format("❌ Invalid model_gpu={}, GPU {} is named twice", *request.model_gpu,
                         *model);
    }
    roles.models.push_back(*model);
  }
  if (request.multi_gpu && roles.models.size() == 1) {
    for (int i = 0; i < count; ++i) {
      if (i != roles.data && i != roles.models.front()) roles.models.push_back(i);
    }
  }
  return std::nullopt;
}

std::vector<std::string> gpu_names(const std::vector<int>& indices) {
  std::vector<std::string> names;
  for (int index : indices) names.push_back(fmt::format("GPU {}", index));
  return names;
}

// True, with the contract's lines said, when a GPU of this process is already in use.
std::optional<std::vector<std::string>> already_initialised(const DeviceRequest& request) {
  std::string cause = DeviceRegistry::get().first_use();
  const bool real = !request.simulate_gpus;
  if (cause.empty() && real) {
    const DriverState state = cuda_driver_state();
    if (state == DriverState::has_context) cause = "a CUDA call that created a context on a GPU";
    if (state == DriverState::initialised) cause = "a CUDA call that initialised the driver";
  }
  if (cause.empty()) return std::nullopt;
  return std::vector<std::string>{
      "❌ Multi-GPU setup failed: Physical devices cannot be modified after being initialized",
      fmt::format("   They were initialised by {}.", cause),
      "   Call early_gpu_configuration() before any work on a GPU."};
}

void check_limits(const DeviceRequest& request) {
  const bool any = request.data_gpu_memory || request.model_gpu_memory;
  if (any && !request.memory_isolation) {
    throw Error(ErrorKind::config, "a GPU memory limit was given without memory isolation")
        .hint("add --enable-memory-isolation, or drop --data-gpu-memory and --model-gpu-memory");
  }
  if (request.data_gpu_memory && !request.data_gpu) {
    throw Error(ErrorKind::config, "--data-gpu-memory limits a data GPU, but none was asked for")
        .hint("add --data-gpu and --model-gpu, or use --model-gpu-memory alone");
  }
}

void limit(LogicalDeviceInfo& info, const std::optional<int64_t>& megabytes) {
  if (!megabytes) return;
  const auto wanted = static_cast<uint64_t>(*megabytes) << 20;
  if (info.memory_limit > 0 && wanted > info.memory_limit)
    log_warning("a limit of {} MB is more than GPU {} has: {} MB are the limit", *megabytes,
                info.original_index, info.memory_limit >> 20);
  info.memory_limit = info.memory_limit > 0 ? std::min(wanted, info.memory_limit) : wanted;
  info.hard_limit = true;
}

DeviceOutcome fail(const std::vector<std::string>& lines) {
  complain(lines);
  return DeviceOutcome::dual_failed;
}

DeviceOutcome configure_dual(const DeviceRequest& request) {
  if (!request.data_gpu || !request.model_gpu) {
    const char* given = request.data_gpu ? "--data-gpu" : "--model-gpu";
    const char* missing = request.data_gpu ? "--model-gpu" : "--data-gpu";
    return fail({fmt::format("❌ {} is missing: {} was given, and Multi-GPU mode needs both",
                             missing, given)});
  }
  if (const auto lines = already_initialised(request)) return fail(*lines);
  Candidates candidates = find_candidates(request);
  const int count = static_cast<int>(candidates.devices.size());
  if (count < 2) {
    return fail({fmt::format("❌ Multi-GPU requires at least 2 GPUs, found {}", count),
                 "   Falling back to single-GPU mode"});
  }
  Roles roles;
  if (const auto complaint = complaint_about(request, count, roles)) return fail({*complaint});

  std::vector<std::string> model_indices;
  for (int model : roles.models) model_indices.push_back(std::to_string(model));
  say("🎯 Configuring Multi-GPU Mode...");
  say(fmt::format("   Data Processing GPU: {}", roles.data));
  say(fmt::format("   Model Training GPU: {}", join(model_indices, ", ")));

  std::vector<int> chosen{roles.data};
  chosen.insert(chosen.end(), roles.models.begin(), roles.models.end());
  std::vector<LogicalDeviceInfo> remapped = make_visible(candidates, chosen);
  limit(remapped.front(), request.data_gpu_memory);
  for (size_t i = 1; i < remapped.size(); ++i) limit(remapped[i], request.model_gpu_memory);
  DeviceRegistry::get().configure(candidates.probe, std::move(remapped), /*dual=*/true);
  say(fmt::format("   Set visible devices: GPU {} and {}", roles.data,
                  join(gpu_names(roles.models), ", ")));
  enable_memory_growth(candidates);
  say("   Configured memory growth for data GPU");
  say("   Configured memory growth for model GPU");
  say("✅ Multi-GPU configuration completed successfully");
  return DeviceOutcome::dual;
}

DeviceOutcome configure_plain(const DeviceRequest& request) {
  if (const auto lines = already_initialised(request)) {
    throw Error(ErrorKind::device,
                lines->at(0).substr(std::string("❌ ").size()) + ". " + trim(lines->at(1)))
        .hint(trim(lines->at(2)));
  }
  Candidates candidates = find_candidates(request);
  std::vector<int> all(candidates.devices.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  std::vector<LogicalDeviceInfo> devices = make_visible(candidates, all);
  for (LogicalDeviceInfo& device : devices) limit(device, request.model_gpu_memory);
  DeviceRegistry::get().configure(candidates.probe, std::move(devices), /*dual=*/false);
  enable_memory_growth(candidates);
  return DeviceOutcome::plain;
}

}  // namespace

DeviceOutcome configure_devices(const DeviceRequest& request) {
  check_limits(request);
  const bool dual_asked = request.data_gpu || request.model_gpu;
  return dual_asked ? configure_dual(request) : configure_plain(request);
}

bool early_gpu_configuration(std::optional<int> data_gpu, std::optional<int> model_gpu) {
  DeviceRequest request;
  if (data_gpu) request.data_gpu = std::to_string(*data_gpu);
  if (model_gpu) request.model_gpu = std::to_string(*model_gpu);
  if (const char* simulated = std::getenv("TANDEM_SIMULATE_GPUS")) {
    if (const auto count = parse_int(simulated)) request.simulate_gpus = static_cast<int>(*count);
  }
  return configure_devices(request) == DeviceOutcome::dual;
}

}  // namespace tandem
