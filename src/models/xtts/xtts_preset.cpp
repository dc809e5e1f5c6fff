#include "models/xtts/xtts_config.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

XttsConfig normal() {
  XttsConfig config;  // XTTS v2 as released
  config.languages = {"en", "es", "fr", "de",    "it", "pt", "pl", "tr", "ru",
                      "nl", "cs", "ar", "zh-cn", "hu", "ko", "ja", "hi"};
  return config;
}

// Speaks nothing; small enough that a test makes and runs one in a moment.
XttsConfig tiny() {
  XttsConfig config = normal();
  config.gpt = {.layers = 2,
                .width = 64,
                .heads = 4,
                .text_tokens = 256,
                .audio_tokens = 66,
                .max_text_tokens = 60,
                .max_audio_tokens = 80,
                .max_prompt_tokens = 70,
                .start_audio_token = 64,
                .stop_audio_token = 65,
                .start_text_token = 255,
                .stop_text_token = 0};
  config.vocoder_width = 32;
  config.speaker_width = 8;
  config.dvae_width = 32;
  return config;
}

// Learns one voice from nothing within minutes. Heads of 64 have kernels of their own.
XttsConfig small() {
  XttsConfig config = normal();
  config.gpt.layers = 10;
  config.gpt.width = 512;
  config.gpt.heads = 8;
  config.vocoder_width = 128;
  config.speaker_width = 16;
  config.dvae_width = 256;
  return config;
}

XttsConfig big() {
  XttsConfig config = normal();
  config.gpt.layers = 36;
  config.gpt.width = 1536;
  config.gpt.heads = 24;
  return config;
}

}  // namespace

XttsConfig xtts_preset(const std::string& name) {
  if (name == "tiny") return tiny();
  if (name == "small") return small();
  if (name == "normal") return normal();
  if (name == "big") return big();
  throw Error(ErrorKind::config, "there is no model size `" + name + "`." +
                                     did_you_mean(name, {"tiny", "small", "normal", "big"}))
      .hint("choose tiny, small, normal or big");
}

}  // namespace tandem
