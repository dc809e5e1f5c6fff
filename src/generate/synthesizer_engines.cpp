#include "generate/synthesizer_engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "device/registry.h"
#include "tandem/devices.h"
#include "tandem/error.h"

namespace tandem {

SpeechPrecision speech_precision(const std::string& name) {
  static const std::map<std::string, SpeechPrecision> known = {{"auto", SpeechPrecision::automatic},
                                                               {"fp32", SpeechPrecision::fp32},
                                                               {"tf32", SpeechPrecision::tf32},
                                                               {"bf16", SpeechPrecision::bf16},
                                                               {"fp16", SpeechPrecision::fp16}};
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  throw Error(ErrorKind::usage, fmt::format("the precision is `{}`; expected auto, fp32, tf32, "
                                            "bf16 or fp16",
                                            name));
}

SpeechEngines::SpeechEngines(const Xtts& model, const SynthesizerOptions& options) {
  if (options.batch_size < 1 || options.batch_size > 4096) {
    throw Error(ErrorKind::usage,
                fmt::format("the batch size is {}; expected 1 to 4096", options.batch_size));
  }
  const SpeechPrecision precision = speech_precision(options.precision);
  std::vector<std::string> names = options.devices;
  if (names.empty()) names = setup_gpu_strategy(true).replicas;
  for (const std::string& name : names) {
    LogicalDevice& device = DeviceRegistry::get().find(name);
    const bool twice =
        std::ranges::any_of(lanes_, [&](const Lane& lane) { return lane.device == device.name(); });
    if (twice) {
      throw Error(ErrorKind::device, fmt::format("the device {} is named twice", device.name()));
    }
    Lane lane{.device = device.name(), .engine = nullptr};
    lane.engine = std::make_unique<SpeechEngine>(
        model, device, SpeechEngineOptions{.places = options.batch_size, .precision = precision});
    lanes_.push_back(std::move(lane));
  }
  places_ = lanes_.size() * static_cast<size_t>(options.batch_size);
}

PendingSpeech SpeechEngines::submit(SpeechRequest request) {
  const auto least = std::ranges::min_element(
      lanes_, {}, [](const Lane& lane) { return lane.load->load(std::memory_order_relaxed); });
  const std::shared_ptr<std::atomic<int64_t>> load = least->load;
  ++*load;
  std::shared_ptr<void> place(nullptr, [load](void*) { --*load; });
  return {.result = least->engine->submit(std::move(request)), .place = std::move(place)};
}

std::vector<std::string> SpeechEngines::devices() const {
  std::vector<std::string> names;
  for (const Lane& lane : lanes_) names.push_back(lane.device);
  return names;
}

}  // namespace tandem
