// The words of `tandem synthesize` and `tandem voice`, checked before a model is loaded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "tandem/devices.h"
#include "tandem/synthesizer.h"

namespace tandem {

struct SynthesizeRequest {
  std::string model;
  SynthesizerOptions synthesizer = {};
  SpeechText standard = {};     // with the text itself, unless `lines_file` is set
  std::string lines_file = {};  // many texts
  std::string output = {};      // a sound, or a folder for many
  std::string save_latents = {}, save_codes = {};
  bool stream = false, json = false;
};

// Throws Error(usage), Error(io), or Error(data) for a text with nothing in it.
SynthesizeRequest synthesize_request(const Arguments& arguments);
std::vector<Option> synthesize_options();

// --model; throws Error(usage).
std::string model_of(const Arguments& arguments);
// --voice, --speaker, --voice-file and how recordings are read.
VoiceChoice voice_of(const Arguments& arguments);
std::vector<Option> voice_options();
std::vector<Option> recording_options();
// --simulate-gpus, --split-gpu, --visible-gpus.
DeviceRequest speech_device_request(const Arguments& arguments);

}  // namespace tandem
