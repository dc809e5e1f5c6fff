// One engine a device; a request goes to the one with the least to do. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "generate/synthesizer_text.h"

namespace tandem {

// "auto", "fp32", "tf32", "bf16" or "fp16". Throws Error(usage).
SpeechPrecision speech_precision(const std::string& name);

class SpeechEngines {
 public:
  // `names` empty: every device that holds a model after configure_devices, else the CPU. Throws
  // Error(device) for a name that is not there, Error(usage) for an unknown precision.
  SpeechEngines(const Xtts& model, const SynthesizerOptions& options);

  PendingSpeech submit(SpeechRequest request);
  size_t places() const { return places_; }  // on all devices
  std::vector<std::string> devices() const;

 private:
  struct Lane {
    std::string device;
    std::unique_ptr<SpeechEngine> engine;
    std::shared_ptr<std::atomic<int64_t>> load = std::make_shared<std::atomic<int64_t>>(0);
  };
  std::vector<Lane> lanes_;
  size_t places_ = 0;
};

}  // namespace tandem
