#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "audio/file/audio_file.h"
#include "audio/signal/mel.h"
#include "audio/signal/resample.h"
#include "models/xtts/voice.h"
#include "models/xtts/xtts.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr double least_seconds = 0.33;  // a shorter piece says nothing about a speaker
constexpr float silence = 1e-4f;        // a peak 80 dB below full scale

Waves one_clip(const at::Tensor& samples, int rate) {
  return {samples.unsqueeze(0), {samples.size(0)}, rate};
}

int64_t samples_in(double seconds, int rate) {
  return static_cast<int64_t>(seconds * static_cast<double>(rate));
}

void check_reference(const std::string& file, const at::Tensor& audio, int rate) {
  const double seconds = static_cast<double>(audio.size(0)) / rate;
  if (seconds < least_seconds) {
    throw Error(ErrorKind::data, fmt::format("`{}` is {:.2f} s long; a voice needs {} s at least",
                                             file, seconds, least_seconds))
        .hint("3 to 30 s of clean speech work best");
  }
  const float peak = audio.abs().max().item<float>();
  if (!(peak >= silence)) {
    throw Error(ErrorKind::data,
                fmt::format("`{}` is silent: no sample is louder than {:g}; a voice needs speech",
                            file, peak));
  }
}

// The mean over pieces of `gpt_cond_chunk_len`; a rest too short to say anything is left out.
at::Tensor condition(const Xtts& model, const at::Tensor& audio, const XttsVoiceOptions& options,
                     std::vector<at::Tensor>& mels) {
  const int rate = model.config.input_rate;
  const int64_t piece = samples_in(options.gpt_cond_chunk_len, rate);
  const double least = least_seconds * rate;
  std::vector<at::Tensor> latents;
  for (int64_t first = 0; first < audio.size(0); first += piece) {
    const int64_t count = std::min(piece, audio.size(0) - first);
    if (static_cast<double>(count) < least) continue;
    mels.push_back(log_mel(one_clip(audio.narrow(0, first, count), rate), mel_xtts_conditioning(),
                           -1, model.mel_stats));
    latents.push_back(model.conditioning(mels.back()));
  }
  return at::stack(latents).mean(0).squeeze(0);
}

}  // namespace

at::Tensor load_reference(const std::string& file, int rate, double seconds) {
  const auto sound = open_audio({.path = file});
  const AudioInfo& info = sound->info();
  // The filter looks a few milliseconds ahead: read a second more than is kept.
  const int64_t wanted =
      seconds > 0 ? std::min(info.frames, samples_in(seconds + 1, info.sample_rate)) : info.frames;
  at::Tensor native = at::empty({wanted}, at::kFloat);
  sound->read_mono(0, wanted, native.data_ptr<float>());
  at::Tensor out = native;
  if (info.sample_rate != rate) {
    out = at::empty({resampled_length(wanted, info.sample_rate, rate)}, at::kFloat);
    resample_clip(native.data_ptr<float>(), wanted, info.sample_rate, rate, out.data_ptr<float>());
  }
  if (seconds > 0) out = out.narrow(0, 0, std::min(out.size(0), samples_in(seconds, rate)));
  return out.clamp(-1, 1);
}

Voice make_voice(const Xtts& model, const std::vector<std::string>& files,
                 const XttsVoiceOptions& options, VoiceSteps* steps) {
  const at::NoGradGuard no_grad;
  if (files.empty()) throw Error(ErrorKind::usage, "a voice needs at least one recording");
  const int rate = model.config.input_rate;
  if (samples_in(options.gpt_cond_chunk_len, rate) < samples_in(least_seconds, rate) + 1) {
    throw Error(ErrorKind::config,
                fmt::format("gpt_cond_chunk_len is {} s; expected more than {} s",
                            options.gpt_cond_chunk_len, least_seconds));
  }
  std::vector<at::Tensor> audios, speakers;
  for (const std::string& file : files) {
    at::Tensor audio = load_reference(file, rate, options.max_ref_len);
    check_reference(file, audio, rate);
    if (options.sound_norm_refs) audio = audio / audio.abs().max() * 0.75;
    const MelOptions mel = mel_speaker_encoder();
    const Waves clip = resample(one_clip(audio, rate), mel.sample_rate);
    const at::Tensor mels = log_mel(clip, mel);
    speakers.push_back(model.speaker_encoder(mels).squeeze(0));
    if (steps && audios.empty()) steps->audio_16k = clip.samples, steps->mel_speaker = mels;
    audios.push_back(audio);
  }
  at::Tensor joined = at::cat(audios);
  if (options.gpt_cond_len > 0) {
    const int64_t least = samples_in(least_seconds, rate) + 1;
    const int64_t most = std::max(least, samples_in(options.gpt_cond_len, rate));
    joined = joined.narrow(0, 0, std::min(joined.size(0), most));
  }
  std::vector<at::Tensor> mels;
  Voice voice{condition(model, joined, options, mels), at::stack(speakers).mean(0)};
  if (steps) {
    for (const at::Tensor& mel : mels) steps->mel_cond_frames.push_back(mel.size(2));
    steps->mel_cond = at::cat(mels, 2);
  }
  return voice;
}

}  // namespace tandem
