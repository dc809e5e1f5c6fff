// A small random model that speaks, and requests to it.
#pragma once

#include <ATen/ATen.h>

#include "device/device_scope.h"
#include "generate/speech_decoder.h"
#include "generate/speech_engine.h"
#include "models/xtts/xtts.h"
#include "nn/sample.h"

namespace tandem {

// Never stops by itself unless `stops`: the stop code's logit is far down.
inline Xtts lively_model(const XttsConfig& config, bool stops = false) {
  Xtts model = Xtts::make(config, 3);
  model.gpt.audio_head.weight.mul_(12);
  if (!stops) model.gpt.audio_head.bias[model.gpt.size.stop_audio_token] = -1e6;
  return model;
}

inline Voice a_voice(const Xtts& model, uint64_t seed) {
  const at::Tensor speaker =
      make_parameter(seed, "speaker", {model.vocoder.speaker.weight.size(1)}, 1.0);
  return {make_parameter(seed, "conditioning", {32, model.gpt.size.width}, 1.0),
          speaker / speaker.norm()};
}

inline SpeechRequest a_request(const Xtts& model, int number, int64_t codes) {
  SpeechRequest request;
  for (int i = 0; i < 5 + 3 * number % 17; ++i)
    request.text_ids.push_back((7 * number + 3 * i) % model.gpt.size.text_tokens);
  request.voice = a_voice(model, static_cast<uint64_t>(number % 3));
  request.seed = static_cast<uint64_t>(number);
  request.max_codes = codes;
  request.keep_latents = true;
  return request;
}

// `count` requests through one engine, the first submitted first; lengths differ.
inline std::vector<SpeechResult> speak(const Xtts& model, LogicalDevice& device, int64_t places,
                                       int count, int64_t codes,
                                       SpeechPrecision precision = SpeechPrecision::automatic,
                                       int64_t kept_voices = -1) {
  SpeechEngine engine(model, device,
                      {.places = places, .precision = precision, .kept_voices = kept_voices});
  std::vector<std::future<SpeechResult>> futures;
  for (int i = 0; i < count; ++i)
    futures.push_back(engine.submit(a_request(model, i, codes - i % 5)));
  std::vector<SpeechResult> results;
  for (auto& future : futures) results.push_back(future.get());
  return results;
}

struct DecodedText {
  std::vector<int64_t> codes;
  at::Tensor latents;  // [codes, D] on the CPU
};

// Texts number `first` and on, a place each, as one start of the decoder and its steps; text i is
// spoken by voice i % voices.
inline std::vector<DecodedText> decode_texts(SpeechDecoder& decoder, LogicalDevice& device,
                                             const Xtts& model, int first, int texts, int voices,
                                             int64_t codes) {
  std::vector<DecodeStart> starts;
  std::vector<int> places;
  for (int i = 0; i < texts; ++i) {
    const SpeechRequest request = a_request(model, first + i, codes);
    const Voice voice = a_voice(model, static_cast<uint64_t>((first + i) % voices));
    starts.push_back({.place = i,
                      .prompt = model.gpt.prompt(request.text_ids, voice.conditioning).squeeze(0),
                      .sampling = request.sampling,
                      .key = draw_key(request.seed),
                      .max_codes = codes,
                      .voice_rows = voice.conditioning.size(0)});
    places.push_back(i);
  }
  std::vector<DecodedText> decoded(static_cast<size_t>(texts));
  const auto collect = [&] {
    for (const DrawnCode& code : decoder.collect())
      decoded[static_cast<size_t>(code.place)].codes.push_back(code.code);
  };
  decoder.start(starts);
  while (decoder.queued() > 0) collect();
  for (int64_t step = 1; step < codes; ++step) {
    decoder.step(places);
    collect();
  }
  DeviceScope scope(device);  // copied on the decoder's stream
  for (int i = 0; i < texts; ++i)
    decoded[static_cast<size_t>(i)].latents = decoder.latents(i, 0, codes).cpu();
  return decoded;
}

}  // namespace tandem
