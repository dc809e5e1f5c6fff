// A narrow XTTS of odd sizes with the weights of xtts_values.h.
#pragma once

#include "models/xtts/xtts.h"
#include "models/xtts_values.h"

namespace tandem::tests {

inline XttsConfig narrow_config(int64_t width = 40, int64_t heads = 5) {
  XttsConfig config;
  config.gpt = {.layers = 3,
                .width = width,
                .heads = heads,
                .text_tokens = 37,
                .audio_tokens = 34,
                .max_text_tokens = 20,
                .max_audio_tokens = 40,
                .max_prompt_tokens = 10,
                .start_audio_token = 32,
                .stop_audio_token = 33,
                .start_text_token = 31,
                .stop_text_token = 0};
  config.vocoder_width = 16;
  config.speaker_embedding = 12;
  return config;
}

// Each part is loaded by names from a map, so sizes come from shapes.
inline NamedWeights gpt_weights(const XttsConfig& config) {
  NamedWeights weights;
  XttsGpt gpt;
  gpt.size = config.gpt;
  gpt.list("gpt.", into(weights));
  Conditioning conditioning;
  conditioning.size = Conditioning::size_of(config);
  conditioning.list("gpt.", into(weights));
  return weights;
}

inline XttsGptSize only_heads(const XttsConfig& config) {
  XttsGptSize size = config.gpt;  // what shapes do not tell
  size.layers = size.width = size.text_tokens = size.audio_tokens = 1;
  size.max_text_tokens = size.max_audio_tokens = 1;
  size.width = size.heads;
  return size;
}

inline XttsGpt narrow_gpt() {
  Weights weights(gpt_weights(narrow_config()));
  return XttsGpt::load(weights, "gpt.", only_heads(narrow_config()));
}

inline Conditioning narrow_conditioning(int64_t width, int64_t heads) {
  Weights weights(gpt_weights(narrow_config(width, heads)));
  return Conditioning::load(weights, "gpt.", heads);
}

inline Vocoder narrow_vocoder() {
  NamedWeights named;
  Vocoder vocoder;
  vocoder.size = Vocoder::size_of(narrow_config());
  vocoder.list("hifigan_decoder.waveform_decoder.", into(named));
  Weights from(named);
  return Vocoder::load(from, "hifigan_decoder.waveform_decoder.", XttsConfig{});
}

inline SpeakerEncoder narrow_speaker_encoder() {
  NamedWeights named;
  SpeakerEncoder encoder;
  encoder.size = {
      .embedding = 12, .widths = {8, 16, 16, 24}, .blocks = {2, 1, 2, 1}, .pooled = 24 * 8};
  encoder.list("hifigan_decoder.speaker_encoder.", into(named));
  Weights from(named);
  return SpeakerEncoder::load(from, "hifigan_decoder.speaker_encoder.");
}

inline Xtts narrow_xtts() {
  Xtts model;
  model.config = narrow_config();
  model.gpt = narrow_gpt();
  model.conditioning = narrow_conditioning(40, 5);
  model.vocoder = narrow_vocoder();
  model.speaker_encoder = narrow_speaker_encoder();
  model.mel_stats = values("mel_stats", {80}, 0.2, 1);
  return model;
}

}  // namespace tandem::tests
