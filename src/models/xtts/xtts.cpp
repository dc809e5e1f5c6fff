#include "models/xtts/xtts.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "models/xtts/mel_stats.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr const char* gpt_prefix = "gpt.";
constexpr const char* vocoder_prefix = "hifigan_decoder.waveform_decoder.";
constexpr const char* speaker_prefix = "hifigan_decoder.speaker_encoder.";

// What Coqui's files carry beside the model: counters, tables that follow from the sizes, copies of
// GPT parts for its decoding, and in a trainer's checkpoint the DVAE.
bool known_extra(const std::string& name) {
  for (const char* part : {"num_batches_tracked", "torch_spec.", "gpt.gpt_inference.",
                           "gpt.gpt.wte.", "gpt.gpt.wpe.", "torch_mel_spectrogram", "dvae."}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

void tell_unknown(const Weights& weights) {
  std::vector<std::string> unknown;
  for (const std::string& name : weights.untaken())
    if (!known_extra(name)) unknown.push_back("`" + name + "`");
  if (unknown.empty()) return;
  const size_t all = unknown.size(), shown = std::min<size_t>(all, 4);
  unknown.resize(shown);
  log_info("`{}` holds {} tensors XTTS has no use for: {}{}", weights.source(), all,
           join(unknown, ", "), all > shown ? ", …" : "");
}

// From the weights, else from the folder's own file.
at::Tensor load_mel_stats(Weights& weights, const XttsFolder& folder) {
  const bool own_file = !weights.has("mel_stats") && !folder.mel_stats_file.empty();
  return own_file ? read_mel_stats(folder.mel_stats_file) : weights.take("mel_stats");
}

}  // namespace

Xtts Xtts::load(const XttsFolder& folder) {
  const XttsFolder::OpenWeights open = folder.open_weights();
  Weights weights(*open.file, open.prefix);
  Xtts model;
  model.config = folder.config;
  model.gpt = XttsGpt::load(weights, gpt_prefix, folder.config.gpt);
  model.config.gpt = model.gpt.size;
  model.conditioning = Conditioning::load(weights, gpt_prefix, model.gpt.size.heads);
  model.vocoder = Vocoder::load(weights, vocoder_prefix, model.config);
  model.speaker_encoder = SpeakerEncoder::load(weights, speaker_prefix);
  model.mel_stats = load_mel_stats(weights, folder);
  weights.require_complete("XTTS model");
  tell_unknown(weights);
  model.check_fit(weights.source());
  return model;
}

void Xtts::check_fit(const std::string& source) const {
  const auto demand = [&](bool fits, const std::string& what) {
    if (!fits) throw Error(ErrorKind::corrupt, fmt::format("`{}`: {}", source, what));
  };
  const int64_t width = gpt.size.width;
  demand(conditioning.size.width == width,
         fmt::format("the conditioning encoder is {} wide; expected the GPT's {}",
                     conditioning.size.width, width));
  demand(vocoder.size.latents == width,
         fmt::format("the vocoder reads latents of {}; expected the GPT's {}", vocoder.size.latents,
                     width));
  demand(vocoder.size.speaker == speaker_encoder.size.embedding,
         fmt::format("the vocoder reads speakers of {}; expected the speaker encoder's {}",
                     vocoder.size.speaker, speaker_encoder.size.embedding));
  demand(mel_stats.dim() == 1 && mel_stats.size(0) == conditioning.size.mels,
         fmt::format("`mel_stats` has {} numbers; expected {}", mel_stats.numel(),
                     conditioning.size.mels));
  const auto id = [&](int64_t token, int64_t tokens, const char* name) {
    demand(token >= 0 && token < tokens,
           fmt::format("{} is {}; expected one of its {} tokens", name, token, tokens));
  };
  id(gpt.size.start_audio_token, gpt.size.audio_tokens, "gpt_start_audio_token");
  id(gpt.size.stop_audio_token, gpt.size.audio_tokens, "gpt_stop_audio_token");
  id(gpt.size.start_text_token, gpt.size.text_tokens, "the id of [START]");
  id(gpt.size.stop_text_token, gpt.size.text_tokens, "the id of [STOP]");
}

Xtts Xtts::make(const XttsConfig& config, uint64_t seed) {
  Xtts model;
  model.config = config;
  model.gpt = XttsGpt::make(config.gpt, seed);
  model.conditioning = Conditioning::make(config, seed);
  model.vocoder = Vocoder::make(config, seed);
  model.speaker_encoder = SpeakerEncoder::make(config, seed);
  draw_from(seed)("mel_stats", model.mel_stats, {config.mel_channels}, {.mean = 1});
  return model;
}

void Xtts::visit(const VisitParameter& visit) {
  visit("mel_stats", mel_stats);
  gpt.visit(gpt_prefix, visit);
  conditioning.visit(gpt_prefix, visit);
  vocoder.visit(vocoder_prefix, visit);
  speaker_encoder.visit(speaker_prefix, visit);
}

XttsCounts count_parameters(const XttsConfig& config) {
  XttsCounts counts;
  XttsGpt gpt;
  gpt.size = config.gpt;
  gpt.list(gpt_prefix, count_into(counts.gpt));
  Conditioning conditioning;
  conditioning.size = Conditioning::size_of(config);
  conditioning.list(gpt_prefix, count_into(counts.gpt));
  Vocoder vocoder;
  vocoder.size = Vocoder::size_of(config);
  vocoder.list(vocoder_prefix, count_into(counts.vocoder));
  SpeakerEncoder speaker;
  speaker.size = SpeakerEncoder::size_of(config);
  speaker.list(speaker_prefix, count_into(counts.speaker_encoder));
  return counts;
}

}  // namespace tandem
