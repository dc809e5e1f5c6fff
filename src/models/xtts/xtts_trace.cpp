#include "models/xtts/xtts_trace.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "audio/signal/mel.h"
#include "models/xtts/dvae_encoder.h"
#include "models/xtts/voice.h"
#include "models/xtts/xtts_speak.h"
#include "models/xtts/xtts.h"
#include "nn/sample.h"
#include "tandem/error.h"
#include "text/clean_characters.h"
#include "text/tokenizer.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

struct TracedText {
  std::string normalised;
  std::vector<int64_t> ids;
};

TracedText read_text(const XttsFolder& folder, const TraceRequest& request) {
  if (trim(request.text).empty()) throw Error(ErrorKind::data, "the text is empty");
  const auto tokenizer = load_tokenizer(folder.vocabulary_file.string());
  TracedText text;
  std::string words = trim(request.text);
  // The reference lowers a text before its cleaners see it, which shows in the Turkish İ.
  if (request.style == CleanStyle::coqui) words = encode_utf8(to_lower(decode_utf8(words)));
  text.normalised = clean_text(words, request.language, request.style);
  for (const int32_t id : tokenizer->encode(xtts_input(text.normalised, request.language)))
    text.ids.push_back(id);
  return text;
}

Spoken decode(const Xtts& model, const std::vector<int64_t>& text_ids,
              const at::Tensor& conditioning, const TraceRequest& request) {
  return speak_codes(model.gpt, text_ids, conditioning,
                     {.sampling = {.temperature = request.sampling.temperature,
                                   .top_k = request.sampling.top_k,
                                   .top_p = request.sampling.top_p,
                                   .repetition_penalty = request.sampling.repetition_penalty,
                                   .greedy = request.greedy},
                      .most_codes = request.max_codes,
                      .seed = request.seed});
}

at::Tensor make_codes(const XttsFolder& folder, const TraceRequest& request,
                      const at::Tensor& mels) {
  if (folder.dvae_file.empty()) {
    if (request.teacher_forced) {
      throw Error(ErrorKind::io, fmt::format("`{}` holds no DVAE (dvae.pth or dvae.safetensors), "
                                             "which makes the codes of --teacher-forced",
                                             folder.path.string()));
    }
    log_info("`{}` holds no DVAE: the trace has no dvae_codes", folder.path.string());
    return {};
  }
  const DvaeEncoder encoder = DvaeEncoder::load(folder.dvae_file.string());
  return encoder.nearest(encoder.vectors(mels));
}

Metadata describe(const TraceRequest& request, const TracedText& text, const VoiceSteps& voice) {
  const XttsSampling& sampling = request.sampling;
  return {{"format", "tandem xtts trace"},
          {"normalised_text", text.normalised},
          {"text", request.text},
          {"language", request.language},
          {"compat", request.style == CleanStyle::coqui ? "coqui" : "best"},
          {"greedy", request.greedy ? "true" : "false"},
          {"seed", std::to_string(request.seed)},
          {"temperature", fmt::format("{}", sampling.temperature)},
          {"length_penalty", fmt::format("{}", sampling.length_penalty)},
          {"repetition_penalty", fmt::format("{}", sampling.repetition_penalty)},
          {"top_k", std::to_string(sampling.top_k)},
          {"top_p", fmt::format("{}", sampling.top_p)},
          {"mel_cond_frames", fmt::format("{}", fmt::join(voice.mel_cond_frames, ","))}};
}

void add_teacher_forced(const Xtts& model, const TracedText& text, const at::Tensor& codes,
                        int64_t samples, const at::Tensor& conditioning, NamedTensors& out) {
  const at::Tensor ids = at::tensor(text.ids, at::kLong).unsqueeze(0);
  const auto lengths = [](int64_t length) { return at::full({1}, length, at::kLong); };
  const auto forced = model.gpt.teacher_forced(ids, lengths(ids.size(1)), codes, lengths(samples),
                                               conditioning.unsqueeze(0), model.config.code_stride);
  out.insert(out.end(), {{"loss_text", forced.loss_text},
                         {"loss_mel", forced.loss_audio},
                         {"text_logits", forced.text_logits.contiguous()},
                         {"mel_logits", forced.audio_logits.contiguous()}});
}

}  // namespace

Trace trace_xtts(const XttsFolder& folder, const TraceRequest& request) {
  const at::NoGradGuard no_grad;
  const TracedText text = read_text(folder, request);
  const Xtts model = Xtts::load(folder);
  VoiceSteps steps;
  const Voice voice = make_voice(model, {request.voice}, model.config.voice, &steps);
  const at::Tensor audio = load_reference(request.voice, model.config.input_rate, 0);
  const Waves clip{audio.unsqueeze(0), {audio.size(0)}, model.config.input_rate};
  const at::Tensor mel_dvae = log_mel(clip, mel_xtts_dvae(), -1, model.mel_stats);
  const at::Tensor dvae_codes = make_codes(folder, request, mel_dvae);
  const Spoken decoded = decode(model, text.ids, voice.conditioning, request);
  const at::Tensor wav = model.vocoder(decoded.latents.unsqueeze(0), voice.speaker.unsqueeze(0));

  Trace trace;
  trace.metadata = describe(request, text, steps);
  trace.tensors = {{"text_ids", at::tensor(text.ids, at::kLong)},
                   {"audio_22k", clip.samples},
                   {"mel_dvae", mel_dvae},
                   {"mel_cond", steps.mel_cond},
                   {"audio_16k", steps.audio_16k},
                   {"mel_speaker", steps.mel_speaker},
                   {"gpt_cond_latent", voice.conditioning.unsqueeze(0)},
                   {"speaker_embedding", voice.speaker.view({1, -1, 1})},
                   {"codes", at::tensor(decoded.codes, at::kLong)},
                   {"logits", decoded.logits},
                   {"latents", decoded.latents},
                   {"wav", wav.squeeze(0)}};
  if (dvae_codes.defined()) trace.tensors.emplace_back("dvae_codes", dvae_codes);
  if (request.teacher_forced) {
    add_teacher_forced(model, text, dvae_codes, audio.size(0), voice.conditioning, trace.tensors);
  }
  return trace;
}

}  // namespace tandem
