// What a MusicGen folder is, from its config.json and generation_config.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "models/musicgen/musicgen_folder.h"

namespace tandem {

// Both end before the weights, which are told as any file of tensors is.
nlohmann::ordered_json musicgen_json(const MusicgenFolder& folder);
std::string musicgen_text(const MusicgenFolder& folder);

}  // namespace tandem
