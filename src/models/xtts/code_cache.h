// Codes of all clips of a corpus, computed once: `INDEX.codes`. Each clip is encoded alone, at its
// true length; in a padded batch its last codes would depend on the padding.
#pragma once

#include <functional>
#include <string>

#include "data/feed/feature_cache.h"
#include "models/xtts/dvae_encoder.h"

namespace tandem {

std::string code_cache_path(const std::string& index);
// Everything that decides a clip's codes: how its mels are made, and the encoder's weights.
uint64_t code_recipe(const SpeechOptions& options, const DvaeEncoder& encoder);

CacheProgress cache_codes(const ClipIndex& index, const SpeechOptions& options,
                          const DvaeEncoder& encoder, const std::string& path, int workers,
                          const OnCacheProgress& on_progress);

}  // namespace tandem
