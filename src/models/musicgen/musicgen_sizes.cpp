// The sizes that were published, and one for tests.
#include <fmt/format.h>

#include "models/musicgen/musicgen.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

T5Size t5_base() { return {.width = 768, .layers = 12, .heads = 12, .inner = 3072}; }

EncodecSize encodec_32khz() {
  return {.rate = 32000,
          .filters = 64,
          .ratios = {8, 5, 4, 4},
          .codebook_size = 2048,
          .codebooks = 4,
          .causal = false,
          .shortcut_conv = false};
}

// A second of sound takes some milliseconds on one core.
MusicgenConfig tiny() {
  return {
      .text =
          {.width = 16, .layers = 2, .heads = 2, .head_width = 8, .inner = 32, .vocabulary = 256},
      .codec = {.rate = 16000,
                .hidden = 8,
                .filters = 2,
                .ratios = {8, 5, 8},
                .codebook_size = 64,
                .codebook_width = 8,
                .codebooks = 4,
                .causal = false,
                .shortcut_conv = false},
      .decoder = {
          .width = 32, .layers = 2, .heads = 4, .inner = 64, .vocabulary = 64, .pad_token = 64}};
}

}  // namespace

MusicgenConfig Musicgen::config_of(const std::string& size) {
  const bool stereo = size.starts_with("stereo-");
  const std::string plain = stereo ? size.substr(7) : size;
  MusicgenConfig config{.text = t5_base(), .codec = encodec_32khz()};
  if (plain == "tiny") {
    config = tiny();
  } else if (plain == "medium") {
    config.decoder = {.width = 1536, .layers = 48, .heads = 24, .inner = 6144};
  } else if (plain == "large") {
    config.decoder = {.width = 2048, .layers = 48, .heads = 32, .inner = 8192};
  } else if (plain != "small") {
    const std::vector<std::string> names = {"tiny",          "small",       "medium",
                                            "large",         "stereo-tiny", "stereo-small",
                                            "stereo-medium", "stereo-large"};
    throw Error(ErrorKind::config,
                fmt::format("there is no MusicGen of size `{}`; expected one of {}.{}", size,
                            join(names, ", "), did_you_mean(size, names)));
  }
  if (stereo) {
    config.decoder.codebooks *= 2;
    config.decoder.channels = 2;
  }
  return config;
}

Musicgen Musicgen::make(const std::string& size, uint64_t seed) {
  Musicgen model;
  model.config = config_of(size);
  model.text = T5Encoder::make(model.config.text, seed);
  model.decoder = MusicDecoder::make(model.config.decoder, model.config.text.width, seed);
  model.codec = Encodec::make(model.config.codec, seed);
  return model;
}

}  // namespace tandem
