// A whole MusicGen folder with random weights, as transformers saved it
// (tests/parity/make_musicgen_fixtures.py): mono, 16 kHz, 320 samples a frame, 4 codebooks of 32
// codes, decoder of width 32 with 2 layers of 4 heads, T5 of width 16, real tokenizer.
#pragma once

#include <string>

namespace tandem {

inline std::string tiny_musicgen_folder() {
  return TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/tiny";
}

}  // namespace tandem
