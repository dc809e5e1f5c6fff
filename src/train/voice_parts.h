// The parts of a voice that training starts from: a model folder (`model.pretrained`: a Coqui
// folder, ours, or what an earlier stage wrote), or new ones of `model.size` with the vocabulary of
// the corpus.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "models/xtts/dvae.h"
#include "models/xtts/trained_stages.h"
#include "models/xtts/xtts.h"

namespace tandem {

struct Config;

struct VoiceParts {
  Xtts xtts;                         // float32 on the CPU
  std::optional<Dvae> dvae;          // none: the folder has none
  std::filesystem::path vocabulary;  // vocab.json; empty: none was found
  bool pretrained = false;           // read, not made
  // Stages that made something of it: `dvae`, `gpt`, `decoder`. All of them for a folder that does
  // not say (trained.json), as a released model's.
  std::set<std::string> trained;
};

// A folder of ours holds: config.json, vocab.json, model.safetensors (Coqui's names, the whole
// model), dvae.safetensors (names of dvae.pth), mel_stats.safetensors.
// `mel_stats` stay undefined where nothing is known of them yet (a new model). Throws
// Error(config), Error(io), Error(corrupt).
VoiceParts open_voice_parts(const Config& config);

// Gives the DVAE, which is there, the model's mel_stats where it has none of its own. Throws
// Error(config) when its codes are not those the GPT speaks.
void fit_dvae(VoiceParts& parts);

// Tells weights apart: 16 digits of the bits of what is visited.
std::string mark_of(const std::function<void(const VisitParameter&)>& visit);

// What the model is or will be, without reading its weights.
XttsConfig voice_config(const Config& config);
// vocab.json of the pretrained model, of the settings, or beside the corpus; empty: none there.
std::filesystem::path find_vocabulary(const Config& config);

// Writes or replaces parts of such a folder, each file atomically; an undefined or absent part is
// left as it is there. `stage` has been trained now.
void write_voice_parts(const VoiceParts& parts, const std::filesystem::path& folder,
                       const std::string& stage = {});

// Tensors that have one of the names take over its values; shapes must fit, or it is
// Error(corrupt). `visit` of any model part.
void put_weights(const NamedTensors& weights,
                 const std::function<void(const VisitParameter&)>& visit);

}  // namespace tandem
