#include "cli/inspect_musicgen.h"

#include <fmt/format.h>

namespace tandem {

using Json = nlohmann::ordered_json;

Json musicgen_json(const MusicgenFolder& folder) {
  const MusicgenConfig& config = folder.config;
  const MusicDecoderSize& decoder = config.decoder;
  const EncodecSize& codec = config.codec;
  return {{"path", folder.path.string()},
          {"kind", "MusicGen folder"},
          {"decoder",
           {{"layers", decoder.layers},
            {"width", decoder.width},
            {"heads", decoder.heads},
            {"inner", decoder.inner},
            {"codebooks", decoder.codebooks},
            {"codes", decoder.vocabulary},
            {"positions", decoder.positions},
            {"channels", decoder.channels}}},
          {"text_encoder",
           {{"layers", config.text.layers},
            {"width", config.text.width},
            {"heads", config.text.heads},
            {"tokens", config.text.vocabulary}}},
          {"codec",
           {{"sample_rate", codec.rate},
            {"samples_a_frame", codec.hop()},
            {"frames_a_second", codec.frame_rate()},
            {"codebooks", codec.codebooks},
            {"codes", codec.codebook_size}}},
          {"sampling",
           {{"sample", config.defaults.sample},
            {"guidance_scale", config.defaults.guidance_scale},
            {"temperature", config.defaults.temperature},
            {"top_k", config.defaults.top_k},
            {"top_p", config.defaults.top_p},
            {"max_length", config.defaults.max_length}}},
          {"vocabulary", folder.tokenizer_file.string()},
          {"files", Json::array()}};
}

std::string musicgen_text(const MusicgenFolder& folder) {
  const MusicgenConfig& config = folder.config;
  const MusicDecoderSize& decoder = config.decoder;
  const EncodecSize& codec = config.codec;
  std::string text = fmt::format("{:<13}{}\n", "folder", folder.path.string());
  text += fmt::format(
      "{:<13}MusicGen, {}: {} layers, width {}, {} heads, {} codebooks of {} codes, {} positions\n",
      "is", decoder.channels == 2 ? "stereo" : "mono", decoder.layers, decoder.width, decoder.heads,
      decoder.codebooks, decoder.vocabulary, decoder.positions);
  text +=
      fmt::format("{:<13}T5 of {} layers, width {}, {} heads, {} tokens\n", "text",
                  config.text.layers, config.text.width, config.text.heads, config.text.vocabulary);
  text += fmt::format("{:<13}{} Hz, {} samples a frame, {:g} frames a second\n", "sound",
                      codec.rate, codec.hop(), codec.frame_rate());
  const MusicgenDefaults& wishes = config.defaults;
  text +=
      fmt::format("{:<13}{}guidance_scale {}, temperature {}, top_k {}, top_p {}, max_length {}\n",
                  "sampling", wishes.sample ? "" : "greedy, ", wishes.guidance_scale,
                  wishes.temperature, wishes.top_k, wishes.top_p, wishes.max_length);
  return text + fmt::format("{:<13}{}\n", "vocabulary", folder.tokenizer_file.string());
}

}  // namespace tandem
