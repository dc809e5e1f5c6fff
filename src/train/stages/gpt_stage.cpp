#include "train/stages/gpt_stage.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "device/logical_device.h"
#include "tandem/error.h"
#include "text/clean_characters.h"
#include "train/batches/voice_sound.h"
#include "train/plan.h"
#include "train/rules/lora.h"
#include "train/sample_sentences.h"

namespace tandem {
namespace {

VoiceParts checked(VoiceParts parts, const Config& config) {
  if (parts.vocabulary.empty()) {
    throw Error(ErrorKind::config, fmt::format("`{}` has no vocabulary (vocab.json) beside it",
                                               config.data.train_data.value_or("")))
        .hint(
            "make one with: tandem prepare DIR --language L --train-tokenizer N, or give "
            "--pretrained");
  }
  if (!parts.trained.contains("dvae") || !parts.dvae) {
    throw Error(ErrorKind::config,
                parts.trained.contains("dvae")
                    ? fmt::format("`{}` has no DVAE (dvae.pth or dvae.safetensors), which turns "
                                  "recordings into codes",
                                  config.model.pretrained.value_or(""))
                    : "the GPT learns the codes of a trained DVAE, and a new model has none")
        .hint("train one first with --stage dvae, or all of it with --stage all");
  }
  check_lora(config.training, parts.trained);
  fit_dvae(parts);
  return parts;
}

TrainingConfig with_noise(TrainingConfig training, const VoiceParts& parts) {
  training.code_noise = code_noise_for(training, parts.trained.contains("gpt"));
  return training;
}

}  // namespace

void check_lora(const TrainingConfig& training, const std::set<std::string>& trained) {
  if (training.lora_rank == 0 || trained.contains("gpt")) return;
  throw Error(ErrorKind::config,
              fmt::format("training.lora_rank is {}: low-rank additions tune a GPT that was "
                          "trained, and this one was not",
                          training.lora_rank))
      .hint(
          "train it whole (leave training.lora_rank out), or give a trained model as --pretrained");
}

bool takes_other_clip(const TrainingConfig& training) {
  return training.conditioning_clip == "other" && training.compat != "coqui";
}

double code_noise_for(const TrainingConfig& training, bool trained_before) {
  const double fitting = trained_before || training.compat == "coqui" ? 0 : 0.1;
  return training.code_noise.value_or(fitting);
}

GptStage::GptStage(const Config& config, LogicalDevice& data_device, const std::string& bad_list)
    : config_(config),
      parts_(checked(open_voice_parts(config), config)),
      learning_(with_noise(config.training, parts_)) {
  const bool on_host = data_device.kind() != DeviceKind::cuda;
  training_ = open(false, on_host, bad_list);
  validation_ = open(true, on_host, "");
  const bool coqui = config.training.compat == "coqui";
  GptBatchOptions options{.like_coqui = coqui,
                          .other_clip = takes_other_clip(config.training),
                          .masks_slice = config.training.mask_conditioning,
                          .code_stride = parts_.xtts.config.code_stride,
                          .seed = static_cast<uint64_t>(config.training.seed)};
  batches_ = std::make_unique<GptBatches>(*training_, parts_.dvae->encoder, options);
  if (validation_) {
    options.validation = true;
    options.masks_slice = false;
    validation_batches_ = std::make_unique<GptBatches>(*validation_, parts_.dvae->encoder, options);
  }
  if (!config.observe.sample_text.empty())
    sentences_ = read_sample_sentences(config.observe.sample_text);
  if (!sentences_.empty()) lines();  // those that cannot be read are told now
  measure_batches();
}

std::unique_ptr<SpeechFeed> GptStage::open(bool validation, bool on_host,
                                           const std::string& bad_list) const {
  DataConfig data = config_.data;
  data.tokenizer = parts_.vocabulary.string();
  const auto seed = static_cast<uint64_t>(config_.training.seed);
  const SpeechFeedOptions options{.seed = seed,
                                  .bad_list = bad_list,
                                  .list_waits = true,
                                  .on_host = on_host,
                                  .replicas = replica_count(config_.training),
                                  .sound = voice_sound(data, seed),
                                  .bounds = voice_bounds(parts_.xtts.config)};
  return validation ? open_validation(data, options) : open_training(data, options);
}

// The largest batch, and what an average one holds.
void GptStage::measure_batches() {
  const int64_t latents = parts_.xtts.conditioning.size.latents;
  const auto rate = static_cast<double>(parts_.xtts.config.input_rate);
  const auto stride = static_cast<double>(parts_.xtts.config.code_stride);
  double places = 0, seconds = 0;
  for (const SpeechFeed* feed : {training_.get(), validation_.get()}) {
    if (!feed) continue;
    for (const Bucket& bucket : feed->order.buckets()) {
      largest_.rows = std::max(largest_.rows, bucket.rows);
      largest_.text = std::max(largest_.text, bucket.tokens);
      largest_.codes = std::max(
          largest_.codes, static_cast<int64_t>(std::ceil(bucket.seconds * rate / stride)) + 1);
      if (feed != training_.get()) continue;
      for (const int64_t clip : bucket.clips) {
        const ClipLength& length = feed->corpus.lengths()[static_cast<size_t>(clip)];
        seconds += length.seconds;
        places += static_cast<double>(latents + length.tokens + 2 + stop_targets + 1) +
                  std::ceil(length.seconds * rate / stride);
      }
    }
  }
  const auto batches = static_cast<double>(std::max<int64_t>(1, batches_an_epoch()));
  tokens_a_batch_ = places / batches;
  seconds_a_batch_ = seconds / batches;
  hours_ = seconds / 3600;
}

void GptStage::check_device(const LogicalDevice& device) const {
  check_fp8_products(config_.training, parts_.xtts.gpt.size.width, device);
}

std::unique_ptr<Learner> GptStage::make_learner(LogicalDevice& device) {
  return std::make_unique<GptLearner>(parts_.xtts.gpt, parts_.xtts.conditioning, learning_, device,
                                      largest_);
}

int64_t GptStage::validation_batches() const {
  return validation_ ? validation_->order.batches_an_epoch() : 0;
}

std::string GptStage::fingerprint() const {
  const XttsGptSize& size = parts_.xtts.gpt.size;
  // Codes of another DVAE have the same numbers and say something else.
  Dvae dvae = *parts_.dvae;
  const std::string mark = mark_of([&](const VisitParameter& visit) {
    dvae.visit("", visit);
    visit("codebook", dvae.encoder.codebook);
  });
  std::string from = "nothing";
  if (parts_.trained.contains("gpt")) {
    XttsGpt gpt = parts_.xtts.gpt;
    from = mark_of([&](const VisitParameter& visit) { gpt.visit("gpt.", visit); });
  }
  return fmt::format(
      "gpt layers={} width={} vocabulary={} codes={} {} dvae={} from={} lora_rank={}", size.layers,
      size.width, size.text_tokens, size.start_audio_token, training_->words(), mark, from,
      config_.training.lora_rank);
}

std::vector<std::pair<std::string, std::string>> GptStage::facts() const {
  return {
      {"corpus", fmt::format("{} clips, {:.2f} h, {} shapes of batches", training_->order.clips(),
                             hours_, training_->order.buckets().size())},
      {"validation", validation_ ? fmt::format("{} clips", validation_->order.clips()) : "none"},
      {"decoded sound", kept_sound_words(*training_)},
      {"codes it reads", *learning_.code_noise > 0 ? fmt::format("{:.0f} % replaced by others",
                                                                 100 * *learning_.code_noise)
                                                   : "the clips'"},
      {"voice from", takes_other_clip(config_.training) ? "another clip of the speaker in the batch"
                                                        : "a slice of the clip"},
      {"codes from", batches_->codes().cached() ? "the corpus's cache" : "the DVAE"}};
}

// Characters of which only one text in fifty has more.
int64_t GptStage::longest_text() const {
  const ClipIndex& index = training_->corpus.index();
  std::vector<int64_t> lengths;
  for (const Bucket& bucket : training_->order.buckets())
    for (const int64_t clip : bucket.clips)
      lengths.push_back(static_cast<int64_t>(decode_utf8(index[clip].text).size()));
  if (lengths.empty()) return 0;
  const auto place = lengths.begin() + static_cast<std::ptrdiff_t>((lengths.size() - 1) * 49 / 50);
  std::nth_element(lengths.begin(), place, lengths.end());
  return *place;
}

void GptStage::export_model(const NamedTensors& weights, const NamedTensors&,
                            const std::string& folder) {
  VoiceParts made = parts_;
  // A GPT that somebody else taught may know longer texts than these.
  int64_t& longest = made.xtts.config.longest_text;
  if (!parts_.trained.contains("gpt") || longest > 0) longest = std::max(longest, longest_text());
  if (config_.training.lora_rank > 0) {
    GptLora lora = GptLora::make(
        made.xtts.gpt.size,
        {.rank = config_.training.lora_rank, .alpha = config_.training.lora_alpha}, 0);
    put_weights(weights, [&](const VisitParameter& visit) { lora.visit("gpt.", visit); });
    // Copies, so that the parts training started from stay as they are.
    made.xtts.gpt.visit("gpt.",
                        [](const std::string&, at::Tensor& tensor) { tensor = tensor.clone(); });
    lora.merge_into(made.xtts.gpt);
    write_voice_parts(made, folder, "gpt");
    write_lora(lora, std::filesystem::path(folder) / lora_file);
  } else {
    put_weights(weights, [&](const VisitParameter& visit) { made.xtts.visit(visit); });
    write_voice_parts(made, folder, "gpt");
  }
}

}  // namespace tandem
