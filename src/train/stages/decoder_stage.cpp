#include "train/stages/decoder_stage.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "device/logical_device.h"
#include "tandem/error.h"
#include "train/batches/voice_sound.h"
#include "train/plan.h"
#include "train/stages/gpt_stage.h"
#include "train/stages/low_precision.h"

namespace tandem {
namespace {

constexpr const char* vocoder_prefix = "hifigan_decoder.waveform_decoder.";

VoiceParts checked(VoiceParts parts) {
  const auto missing = [](const char* what) {
    return Error(ErrorKind::config,
                 fmt::format("the decoder learns to speak what a trained GPT says, and {}", what))
        .hint("train the gpt stage first or give --pretrained");
  };
  if (!parts.pretrained || !parts.trained.contains("gpt"))
    throw missing("this model's GPT knows nothing yet");
  if (!parts.dvae) throw missing("its folder has no DVAE (dvae.pth or dvae.safetensors)");
  fit_dvae(parts);
  return parts;
}

}  // namespace

DecoderLearnerOptions decoder_options(const TrainingConfig& training, const LogicalDevice& device) {
  const at::ScalarType compute = compute_type(training.precision, device);
  return {.compute = compute,
          .segment_codes = training.segment_codes,
          .own_codes_share = training.own_codes_share,
          .mel_weight = training.mel_loss_weight,
          .feature_weight = training.feature_loss_weight,
          .spectral_weight = training.spectral_loss_weight,
          .speaker_weight = training.speaker_loss_weight,
          .discriminator_start = training.discriminator_start,
          .by_products = compute == at::kBFloat16};
}

Discriminators::Size discriminators_for(const Vocoder::Size& vocoder) {
  const int64_t width = std::clamp<int64_t>(2 * vocoder.width, 32, 1024);
  return {.width = width / 32 * 32};
}

DecoderStage::DecoderStage(const Config& config, LogicalDevice& data_device,
                           const std::string& bad_list)
    : DecoderStage(config, open_voice_parts(config), data_device.kind() != DeviceKind::cuda,
                   bad_list) {}

DecoderStage::DecoderStage(const Config& config, VoiceParts parts, bool on_host,
                           const std::string& bad_list)
    : config_(config),
      parts_(checked(std::move(parts))),
      training_(open(Use::training, on_host, bad_list)),
      validation_(open(Use::validation, on_host, "")) {}

DecoderStage::Fed DecoderStage::open(Use use, bool on_host, const std::string& bad_list) const {
  const XttsConfig& voice = parts_.xtts.config;
  const auto seed = static_cast<uint64_t>(config_.training.seed);
  DataConfig data = config_.data;
  data.tokenizer = parts_.vocabulary.string();
  if (use == Use::samples) {
    data.batch_size = config_.observe.sample_count;
    data.batch_seconds = std::nullopt;
    data.buckets = 1;
  }
  SpeechFeedOptions options{.seed = seed,
                            .bad_list = bad_list,
                            .list_waits = true,
                            .on_host = on_host,
                            .replicas = use == Use::samples ? 1 : replica_count(config_.training),
                            .sound = voice_sound(data, seed, voice.output_rate),
                            .bounds = voice_bounds(voice)};
  Fed fed;
  if (use != Use::training) {
    fed.feed = open_validation(data, options);
    if (!fed.feed && use == Use::validation) return fed;
  }
  if (!fed.feed) {
    options.shuffle = use == Use::training;
    fed.feed = open_training(data, options);
  }
  const GptBatchOptions slices{.validation = use != Use::training,
                               .other_clip = takes_other_clip(config_.training),
                               .masks_slice = false,
                               .code_stride = voice.code_stride,
                               .seed = seed};
  fed.batches = std::make_unique<DecoderBatches>(
      *fed.feed, parts_.dvae->encoder, parts_.xtts.speaker_encoder, voice.output_rate, slices);
  return fed;
}

std::unique_ptr<Learner> DecoderStage::make_learner(LogicalDevice& device) {
  const auto seed = static_cast<uint64_t>(config_.training.seed);
  return std::make_unique<DecoderLearner>(
      parts_.xtts, Discriminators::make(discriminators_for(parts_.xtts.vocoder.size), seed),
      device.torch_device(), decoder_options(config_.training, device));
}

int64_t DecoderStage::validation_batches() const {
  return validation_.feed ? validation_.feed->order.batches_an_epoch() : 0;
}

double DecoderStage::seconds_a_batch() const {
  return seconds_of(*training_.feed) /
         static_cast<double>(std::max<int64_t>(1, batches_an_epoch()));
}

double DecoderStage::tokens_a_batch() const {
  const XttsConfig& voice = parts_.xtts.config;
  return seconds_a_batch() * voice.input_rate / static_cast<double>(voice.code_stride);
}

std::string DecoderStage::fingerprint() const {
  const Vocoder::Size& size = parts_.xtts.vocoder.size;
  // It has learned to speak what this GPT says.
  Xtts xtts = parts_.xtts;
  const std::string mark = mark_of([&](const VisitParameter& visit) {
    xtts.gpt.visit("gpt.", visit);
    xtts.conditioning.visit("gpt.", visit);
  });
  std::string from = "nothing";
  if (parts_.trained.contains("decoder"))
    from = mark_of([&](const VisitParameter& visit) { xtts.vocoder.visit("", visit); });
  return fmt::format("decoder width={} latents={} {} gpt={} from={}", size.width, size.latents,
                     training_.feed->words(), mark, from);
}

std::vector<std::pair<std::string, std::string>> DecoderStage::facts() const {
  const TrainingConfig& training = config_.training;
  int64_t parameters = 0;
  Discriminators judges;
  judges.size = discriminators_for(parts_.xtts.vocoder.size);
  judges.list("", count_into(parameters));
  const Vocoder& vocoder = parts_.xtts.vocoder;
  const int64_t judged = vocoder.frames_of(training.segment_codes) * vocoder.samples_a_frame();
  return {{"corpus",
           fmt::format("{} clips, {:.2f} h, {} shapes of batches", training_.feed->order.clips(),
                       seconds_of(*training_.feed) / 3600, training_.feed->order.buckets().size())},
          {"validation",
           validation_.feed ? fmt::format("{} clips", validation_.feed->order.clips()) : "none"},
          {"decoded sound", kept_sound_words(*training_.feed)},
          {"window", fmt::format("{} codes, {:.2f} s", training.segment_codes,
                                 static_cast<double>(judged) / parts_.xtts.config.output_rate)},
          {"own codes", fmt::format("{:.0f} % of clips", 100 * training.own_codes_share)},
          {"discriminators", fmt::format("{:.1f} million parameters, from step {}",
                                         static_cast<double>(parameters) / 1e6,
                                         std::max<int64_t>(1, training.discriminator_start))}};
}

void DecoderStage::export_model(const NamedTensors& weights, const NamedTensors&,
                                const std::string& folder) {
  std::map<std::string, at::Tensor> named;
  for (const auto& [name, tensor] : weights)
    if (name.starts_with(vocoder_prefix)) named[name] = tensor;
  Weights found(named, "the trained decoder");
  VoiceParts parts = parts_;
  parts.xtts.vocoder = Vocoder::load(found, vocoder_prefix, parts.xtts.config);
  found.require_complete("vocoder");
  write_voice_parts(parts, folder, "decoder");
}

}  // namespace tandem
