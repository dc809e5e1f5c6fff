// Sentences spoken by the GPT as it is now.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "audio/signal/griffin_lim.h"
#include "device/torch_errors.h"
#include "models/xtts/voice.h"
#include "models/xtts/xtts_speak.h"
#include "tandem/config.h"
#include "text/clean.h"
#include "train/stages/gpt_stage.h"
#include "util/log.h"
#include "util/signals.h"

namespace tandem {
namespace {

// A GPT that has not learned to stop would go on to its last place.
int64_t most_codes(size_t text_ids) { return 24 + 6 * static_cast<int64_t>(text_ids); }

// A part of the model that waits on the host, for the time of the samples.
template <class Part>
Part on(const at::Device& device, Part part) {
  part.visit("", [&](const std::string&, at::Tensor& tensor) { tensor = tensor.to(device); });
  return part;
}

}  // namespace

// What the DVAE makes of the codes is heard in any case; a vocoder that was trained sounds better.
void GptStage::hear(const Spoken& spoken, const at::Tensor& speaker, const Ears& with,
                    Sample& sample) const {
  const at::Device here = spoken.latents.device();
  const XttsConfig& config = parts_.xtts.config;
  std::vector<int64_t> codes = spoken.codes;
  if (!codes.empty() && codes.back() == config.gpt.stop_audio_token) codes.pop_back();
  const auto count = static_cast<int64_t>(codes.size());
  std::erase_if(codes, [&](int64_t code) { return code >= config.gpt.start_audio_token; });
  if (codes.empty()) return;
  const at::Tensor numbers = at::tensor(codes, at::kLong).unsqueeze(0).to(here);
  sample.mel =
      with.dvae.decode(numbers)[0].to(at::kCPU) *
      (parts_.xtts.mel_stats.defined() ? parts_.xtts.mel_stats.unsqueeze(1) : at::ones({1, 1}));
  if (with.vocoder) {
    sample.wave = (*with.vocoder)(spoken.latents.narrow(0, 0, count).unsqueeze(0),
                                  speaker.unsqueeze(0).to(here))
                      .flatten()
                      .to(at::kCPU);
    sample.rate = config.output_rate;
  } else {
    sample.wave = griffin_lim(sample.mel, mel_xtts_dvae());
    sample.rate = config.input_rate;
  }
}

std::vector<GptStage::Line> GptStage::lines() const {
  const SpeechFeed& feed = validation_ ? *validation_ : *training_;
  std::vector<int64_t> clips;
  for (const Bucket& bucket : feed.order.buckets())
    clips.insert(clips.end(), bucket.clips.begin(), bucket.clips.end());
  const auto wanted = static_cast<size_t>(config_.observe.sample_count);
  std::vector<Line> lines;
  const auto voice_of = [&](size_t i) {
    return feed.corpus.index().full_path(
        clips[i * clips.size() / std::max<size_t>(wanted, 1) % clips.size()]);
  };
  if (sentences_.empty()) {
    for (size_t i = 0; i < std::min(wanted, clips.size()); ++i) {
      const int64_t clip = clips[i * clips.size() / wanted];
      const std::vector<int32_t> ids = feed.corpus.ids(clip);
      lines.push_back({std::string(feed.corpus.index()[clip].text),
                       {ids.begin(), ids.end()},
                       feed.corpus.index().full_path(clip)});
    }
    return lines;
  }
  const std::string language =
      config_.data.language.value_or(std::string(feed.corpus.index()[clips.front()].language));
  for (const std::string& text : sentences_) {
    if (lines.size() == wanted) break;
    const std::string cleaned = clean_text(text, language, CleanStyle::best);
    const std::vector<int32_t> ids = feed.corpus.tokenizer()->encode(xtts_input(cleaned, language));
    lines.push_back({text, {ids.begin(), ids.end()}, voice_of(lines.size())});
  }
  return lines;
}

std::vector<Sample> GptStage::samples(Learner& learner) {
  auto& now = static_cast<GptLearner&>(learner);
  const XttsGpt gpt = now.current_gpt();
  Xtts here = parts_.xtts;  // on the CPU, with the conditioning as it is now
  here.conditioning = now.current_conditioning();
  here.conditioning.visit("gpt.", [](const std::string&, at::Tensor& tensor) {
    tensor = tensor.detach().to(at::kCPU, at::kFloat);
  });
  const XttsSampling& sampling = here.config.sampling;
  const std::vector<Line> wanted = lines();
  if (wanted.empty()) return {};
  const at::Device there = gpt.text_embedding.device();
  Ears ears{.dvae = on(there, *parts_.dvae), .vocoder = {}};
  if (parts_.trained.contains("decoder")) ears.vocoder = on(there, parts_.xtts.vocoder);
  std::vector<Sample> samples;
  for (const Line& line : wanted) {
    if (stop_requested() != StopRequest::none) break;
    try {
      const Voice voice = make_voice(here, {line.voice_file}, here.config.voice);
      const Spoken spoken =
          speak_codes(gpt, line.ids, voice.conditioning.to(there),
                      {.sampling = {.temperature = sampling.temperature,
                                    .top_k = sampling.top_k,
                                    .top_p = sampling.top_p,
                                    .repetition_penalty = sampling.repetition_penalty},
                       .most_codes = most_codes(line.ids.size()),
                       .seed = static_cast<uint64_t>(config_.training.seed)});
      Sample sample{.name = fmt::format("sentence/{}", samples.size() + 1), .text = line.text};
      hear(spoken, voice.speaker, ears, sample);
      samples.push_back(std::move(sample));
    } catch (const std::exception& error) {
      log_warning("no sample of \"{}\": {}", line.text, explain_with_torch(error).sentence);
    }
  }
  return samples;
}

}  // namespace tandem
