#include "train/stages/dvae_stage.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "audio/signal/griffin_lim.h"
#include "data/feed/clip_shape.h"
#include "device/logical_device.h"
#include "tandem/error.h"
#include "train/batches/voice_sound.h"
#include "train/plan.h"
#include "util/log.h"
#include "util/signals.h"

namespace tandem {
namespace {

constexpr int64_t codes_for_one = 8;  // learned with, for each that is kept
constexpr int64_t most_clips = 8;     // that samples and the selection look at
constexpr int64_t whole = 4;          // frames a code

SpeechFeedOptions feed_options(const Config& config, const XttsConfig& model, LogicalDevice& device,
                               const std::string& bad_list) {
  const auto seed = static_cast<uint64_t>(config.training.seed);
  SpeechOptions sound = voice_sound(config.data, seed);
  sound.waves = false;
  ClipBounds bounds = voice_bounds(model);
  bounds.most_tokens = 0;  // texts are not read here
  return {.seed = seed,
          .bad_list = bad_list,
          .list_waits = true,
          .on_host = device.kind() == DeviceKind::cpu,
          .replicas = replica_count(config.training),
          .sound = sound,
          .bounds = bounds};
}

at::ScalarType compute_of(const std::string& precision) {
  if (precision == "bf16") return at::kBFloat16;
  return precision == "fp16" ? at::kHalf : at::kFloat;
}

// As the front end gives it, cut to whole codes; undefined where the clip cannot be read.
at::Tensor mels_of_clip(const SpeechFeed& feed, int64_t clip) {
  const SpeechOptions& options = feed.batches.options();
  try {
    const at::Tensor mels = log_mel(read_clip(feed.corpus.index(), clip, options), options.mel)[0];
    const int64_t frames = mels.size(1) / whole * whole;
    return frames > 0 ? mels.slice(1, 0, frames).contiguous() : at::Tensor();
  } catch (const AudioError& error) {
    log_debug("clip {} is not looked at: {}", clip, error.what());
    return {};
  }
}

at::Tensor find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [found, tensor] : tensors)
    if (found == name) return tensor;
  throw Error(ErrorKind::internal, fmt::format("the trained DVAE has no `{}`", name));
}

}  // namespace

void check_dvae_codes(const TrainingConfig& training, const XttsConfig& model) {
  const int64_t asked = training.dvae_codes, needed = model.gpt.audio_tokens - 2;
  if (asked == 0 || asked >= needed) return;
  throw Error(ErrorKind::config,
              fmt::format("training.dvae_codes is {}; the model needs {} codes", asked, needed))
      .hint("leave it at 0 for 8 times as many");
}

DvaeStage::DvaeStage(const Config& config, LogicalDevice& data_device, const std::string& bad_list)
    : DvaeStage(config, open_voice_parts(config), data_device, bad_list) {}

DvaeStage::DvaeStage(const Config& config, VoiceParts parts, LogicalDevice& data_device,
                     const std::string& bad_list)
    : config_(config),
      parts_(std::move(parts)),
      made_(!parts_.pretrained || !parts_.dvae || !parts_.trained.contains("dvae")),
      dvae_(starting_dvae()),
      training_(open_training(config.data,
                              feed_options(config, parts_.xtts.config, data_device, bad_list))),
      held_out_(open_validation(config.data,
                                feed_options(config, parts_.xtts.config, data_device, bad_list))),
      batches_(*training_) {
  if (held_out_) held_out_batches_.emplace(*held_out_);
  at::Tensor& stats = parts_.xtts.mel_stats;
  measured_ = !stats.defined();
  if (measured_) stats = measure_mel_stats(*training_, mel_xtts_dvae());
  dvae_.encoder.mel_stats = stats;
}

Dvae DvaeStage::starting_dvae() const {
  const std::string folder = config_.model.pretrained.value_or("");
  if (!made_) {
    Dvae dvae = *parts_.dvae;
    if (dvae.encoder.size.codes > model_codes()) {
      throw Error(ErrorKind::config, fmt::format("the DVAE of `{}` has {} codes; its GPT knows {}",
                                                 folder, dvae.encoder.size.codes, model_codes()));
    }
    dvae.embed_avg = at::Tensor();  // made to fit the codebook, which may not be where it was
    return dvae;
  }
  if (parts_.pretrained && parts_.trained.contains("gpt")) {
    log_warning(
        "`{}` holds no trained DVAE: a new one is made, whose codes mean nothing to the GPT of "
        "that folder until it is trained again",
        folder);
  }
  check_dvae_codes(config_.training, parts_.xtts.config);
  const int64_t asked = config_.training.dvae_codes;
  return Dvae::make(parts_.xtts.config, static_cast<uint64_t>(config_.training.seed),
                    asked != 0 ? asked : codes_for_one * model_codes());
}

DvaeLearnerOptions DvaeStage::learner_options() const {
  const TrainingConfig& training = config_.training;
  CodebookOptions codebook{.decay = training.codebook_decay};
  if (!made_) codebook.warms_up = false, codebook.revive_every = 0;
  return {.commitment = training.commitment,
          .compute = compute_of(training.precision),
          .beta1 = training.beta1,
          .beta2 = training.beta2,
          .largest_norm = training.gradient_clip,
          .codebook = codebook};
}

void DvaeStage::begin() {
  training_->bad.begin();
  if (held_out_) held_out_->bad.begin();
}

std::unique_ptr<Learner> DvaeStage::make_learner(LogicalDevice& device) {
  Dvae own = dvae_;
  const auto copied = [&](at::Tensor& tensor) {
    tensor = tensor.to(device.torch_device(), tensor.scalar_type(), /*non_blocking=*/false,
                       /*copy=*/true);
  };
  own.visit("", [&](const std::string&, at::Tensor& tensor) { copied(tensor); });
  copied(own.encoder.mel_stats);
  return std::make_unique<DvaeLearner>(std::move(own), learner_options());
}

int64_t DvaeStage::validation_batches() const {
  return held_out_ ? held_out_->order.batches_an_epoch() : 0;
}

double DvaeStage::seconds_a_batch() const {
  return seconds_of(*training_) / static_cast<double>(std::max<int64_t>(1, batches_an_epoch()));
}

double DvaeStage::tokens_a_batch() const {
  const MelOptions mel = mel_xtts_dvae();
  return seconds_a_batch() * mel.sample_rate / mel.hop;
}

std::string DvaeStage::fingerprint() const {
  const DvaeEncoder::Size& size = dvae_.encoder.size;
  Dvae dvae = dvae_;
  return fmt::format(
      "dvae codes={} width={} hidden={} mels={} {} from={}", size.codes, size.vector,
      size.widths.back(), size.mels, training_->words(),
      made_ ? "nothing" : mark_of([&](const VisitParameter& visit) { dvae.visit("", visit); }));
}

std::vector<std::pair<std::string, std::string>> DvaeStage::facts() const {
  const int64_t codes = dvae_.encoder.size.codes;
  std::vector<std::pair<std::string, std::string>> rows;
  if (!made_) {
    rows.emplace_back("DVAE",
                      fmt::format("{} codes of the model folder, each keeps its index", codes));
  } else if (codes == model_codes()) {
    rows.emplace_back("DVAE", fmt::format("new, {} codes", codes));
  } else {
    rows.emplace_back("DVAE", fmt::format("new, {} codes, of which the {} most used are kept",
                                          codes, model_codes()));
  }
  rows.emplace_back("decoded sound", kept_sound_words(*training_));
  rows.emplace_back("mel statistics", measured_ ? "measured on the corpus" : "of the model folder");
  if (selection_) {
    rows.emplace_back(
        "codes kept",
        fmt::format(
            "{} of {}, {:.1f} % of the frames keep theirs", selection_->after, selection_->before,
            100 * (selection_->judged ? selection_->clip_share : selection_->counted_share)));
    if (selection_->judged) {
      rows.emplace_back("reconstruction",
                        fmt::format("{:.5f} with all codes, {:.5f} with those kept",
                                    selection_->loss_before, selection_->loss_after));
    }
  }
  return rows;
}

const MelClips& DvaeStage::clips() {
  if (clips_) return *clips_;
  const SpeechFeed& feed = held_out_ ? *held_out_ : *training_;
  std::vector<int64_t> all;
  for (const Bucket& bucket : feed.order.buckets())
    all.insert(all.end(), bucket.clips.begin(), bucket.clips.end());
  std::sort(all.begin(), all.end());
  const auto count = std::min<size_t>(most_clips, all.size());
  clips_.emplace();
  for (size_t i = 0; i < count; ++i) {
    const at::Tensor mels = mels_of_clip(feed, all[i * all.size() / count]);
    if (mels.defined()) clips_->push_back(mels);
  }
  return *clips_;
}

std::vector<Sample> DvaeStage::samples(Learner& learner) {
  const at::NoGradGuard no_grad;
  auto& trained = dynamic_cast<DvaeLearner&>(learner);
  const MelOptions mel = mel_xtts_dvae();
  std::vector<Sample> made;
  const auto most = static_cast<size_t>(std::max<int64_t>(0, config_.observe.sample_count));
  for (size_t i = 0; i < std::min(most, clips().size()); ++i) {
    if (stop_requested() != StopRequest::none) break;
    const at::Tensor& clip = clips()[i];
    const at::Tensor back = trained.reconstruct(clip);
    const at::Tensor gap = at::full({clip.size(0), whole}, clip.min().item<double>());
    const std::string name = fmt::format("validation/{}", i + 1);
    made.push_back({.name = name,
                    .wave = griffin_lim(back, mel),
                    .rate = mel.sample_rate,
                    .mel = at::cat({clip, gap, back}, 1),
                    .text = "left the clip, right what its codes say; heard by Griffin-Lim"});
    made.push_back({.name = name + "-clip",
                    .wave = griffin_lim(clip, mel),
                    .rate = mel.sample_rate,
                    .text = "the clip's own mels by Griffin-Lim"});
  }
  return made;
}

void DvaeStage::export_model(const NamedTensors& weights, const NamedTensors& buffers,
                             const std::string& folder) {
  Dvae dvae = dvae_;
  const at::Tensor none;
  dvae.encoder.codebook = dvae.cluster_size = dvae.embed_avg = none;
  dvae.visit("",
             [&](const std::string& name, at::Tensor& tensor) { tensor = find(weights, name); });
  dvae.encoder.codebook = find(buffers, "codebook.embed");
  dvae.cluster_size = find(buffers, "codebook.cluster_size");
  dvae.embed_avg = find(buffers, "codebook.embed_avg");
  if (made_ && dvae.encoder.size.codes > model_codes()) {
    selection_ = select_codes(dvae, model_codes(), clips());
    log_info(
        "DVAE: the {} most used of {} codes are kept; {:.1f} % of the training's last frames "
        "had one of them",
        selection_->after, selection_->before, 100 * selection_->counted_share);
    if (selection_->judged) {
      log_info(
          "DVAE: {:.1f} % of the frames of {} clips keep their code; reconstruction loss "
          "{:.5f} before, {:.5f} after",
          100 * selection_->clip_share, clips().size(), selection_->loss_before,
          selection_->loss_after);
    }
  }
  VoiceParts out = parts_;
  out.dvae = std::move(dvae);
  write_voice_parts(out, folder, "dvae");
}

}  // namespace tandem
