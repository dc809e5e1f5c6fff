#include "train/stages/gpt_learner.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <set>

#include "device/logical_device.h"
#include "tandem/config.h"
#include "tandem/error.h"
#include "train/batches/gpt_batches.h"
#include "train/rules/fused_step.h"
#include "train/rules/pass_places.h"
#include "train/rules/weight_groups.h"
#include "train/stages/code_noise.h"
#include "train/stages/counted_tensor.h"
#include "train/stages/low_precision.h"

namespace tandem {
namespace {

TrainedWeight trained(const TrainedView& view) { return {view.weight, view.gradient}; }

// The views in the order of XttsGpt::list.
GptStepWeights step_weights(const std::vector<TrainedView>& views, size_t first, size_t layers,
                            int64_t heads) {
  size_t next = first;
  const auto take = [&] { return trained(views[next++]); };
  GptStepWeights weights;
  weights.heads = heads;
  weights.text_embedding = take();
  weights.audio_embedding = take();
  weights.text_positions = take();
  weights.audio_positions = take();
  for (size_t i = 0; i < layers; ++i) {
    GptStepBlock block;
    for (TrainedWeight* weight :
         {&block.norm1_weight, &block.norm1_bias, &block.qkv_weight, &block.qkv_bias,
          &block.project_weight, &block.project_bias, &block.norm2_weight, &block.norm2_bias,
          &block.expand_weight, &block.expand_bias, &block.contract_weight, &block.contract_bias})
      *weight = take();
    weights.blocks.push_back(block);
  }
  for (TrainedWeight* weight :
       {&weights.last_norm_weight, &weights.last_norm_bias, &weights.final_norm_weight,
        &weights.final_norm_bias, &weights.text_head_weight, &weights.text_head_bias,
        &weights.audio_head_weight, &weights.audio_head_bias})
    *weight = take();
  return weights;
}

ConditioningStepWeights conditioning_weights(const std::vector<TrainedView>& views,
                                             const Conditioning::Size& size) {
  std::vector<TrainedWeight> in_order;  // that of Conditioning::list
  for (const TrainedView& view : views) in_order.push_back(trained(view));
  ConditioningStepWeights weights = conditioning_step_weights(
      in_order, static_cast<size_t>(size.blocks), static_cast<size_t>(size.layers));
  weights.heads = size.heads;
  weights.groups = norm_groups(size.width);
  return weights;
}

}  // namespace

void check_fp8_products(const TrainingConfig& config, int64_t width, const LogicalDevice& device) {
  if (!config.fp8_products || (fuses_gpt_step(config, device.kind()) && gpt_step_takes_fp8(width)))
    return;
  throw Error(ErrorKind::config,
              fmt::format("training.fp8_products=true is for a Hopper GPU, bf16, kernel fusion, no "
                          "LoRA and a GPT whose width is a multiple of 128, 1024 at most; this is "
                          "{} on {}, width {}",
                          config.precision, device.info().hardware, width))
      .hint("leave it out");
}

GptLearner::GptLearner(const XttsGpt& gpt, const Conditioning& conditioning,
                       const TrainingConfig& config, LogicalDevice& device,
                       const GptLargest& largest)
    : config_(config), device_(device), largest_(largest), gpt_(gpt), conditioning_(conditioning) {
  const at::Device here = device.torch_device();
  fused_ = fuses_gpt_step(config, device.kind());
  check_fp8_products(config, gpt_.size.width, device);
  const Conditioning::Size& size = conditioning_.size;
  conditions_by_hand_ =
      fused_ && ConditioningStep::fits(size.width, size.heads, norm_groups(size.width), size.inner);
  if (config.lora_rank == 0) return;
  lora_ = GptLora::make(gpt_.size, {.rank = config.lora_rank, .alpha = config.lora_alpha},
                        static_cast<uint64_t>(config.seed));
  // What is not trained is not taken over by the loop.
  const auto move = [&](const std::string&, at::Tensor& tensor) { tensor = tensor.to(here); };
  gpt_.visit("gpt.", move);
  conditioning_.visit("gpt.", move);
}

GptLearner::~GptLearner() = default;

std::vector<Phase> GptLearner::phases() {
  Phase phase{.name = "gpt",
              .beta1 = config_.beta1,
              .beta2 = config_.beta2,
              .largest_norm = config_.gradient_clip};
  // Gradients become final from the last tensor to the first. Coqui also lets the perceiver's
  // latents decay; where nothing needs them that ends in a division by almost nothing.
  const auto decaying = [&](const std::string& name) {
    return decays(name) && (config_.compat == "coqui" ||
                            (!name.ends_with(".latents") && !name.ends_with(".gamma")));
  };
  const auto add = [&](bool split) {
    return [&, split](const std::string& name, at::Tensor& tensor) {
      phase.tensors.push_back({name, &tensor, decaying(name), split});
    };
  };
  if (lora_) {
    lora_->visit("gpt.", add(false));
    return {phase};
  }
  if (!given_latents_.defined()) conditioning_.visit("gpt.", add(conditions_by_hand_));
  layer_starts_.clear();
  const size_t before = phase.tensors.size();
  gpt_.visit("gpt.", add(fused_));
  for (size_t i = 0; i < gpt_.blocks.size(); ++i) layer_starts_.push_back(before + 4 + 12 * i);
  // Nine tenths of all weights, each with one product for its gradient.
  std::set<const at::Tensor*> matrices;
  for (const XttsGptBlock& block : gpt_.blocks)
    matrices.insert(
        {&block.qkv_weight, &block.project_weight, &block.expand_weight, &block.contract_weight});
  for (TrainedTensor& tensor : phase.tensors)
    tensor.half_gradient = fused_ && matrices.contains(tensor.tensor);
  return {phase};
}

void GptLearner::placed(const std::vector<std::vector<TrainedView>>& views) {
  if (!fused_) return;
  const XttsGptSize& size = gpt_.size;
  const int64_t latents = conditioning_.size.latents;
  longest_ = latents + largest_.text + 2 + largest_.codes + stop_targets + 1;
  step_ = std::make_unique<GptStep>(
      step_weights(views[0], layer_starts_.front() - 4, gpt_.blocks.size(), size.heads),
      GptStepOptions{.most_places = pass_places(largest_.rows * longest_, longest_),
                     .most_rows = largest_.rows,
                     .longest = longest_,
                     .latents = latents,
                     .recompute = config_.recompute,
                     .dropout = config_.dropout,
                     .text_loss_weight = config_.text_loss_weight,
                     .recall_weight = config_.recall_weight,
                     .fp8 = config_.fp8_products,
                     .start_text = size.start_text_token,
                     .stop_text = size.stop_text_token,
                     .start_audio = size.start_audio_token,
                     .stop_audio = size.stop_audio_token,
                     .reads_stop = config_.compat != "coqui",
                     .tune = !config_.deterministic});
  if (conditions_by_hand_ && !given_latents_.defined()) {
    conditioning_step_ = std::make_unique<ConditioningStep>(
        conditioning_weights(views[0], conditioning_.size), !config_.deterministic);
  }
}

int GptLearner::pieces(size_t) const { return step_ ? step_->pieces() : 1; }

size_t GptLearner::final_from(size_t, int piece) const {
  if (!step_ || piece + 1 == step_->pieces()) return 0;
  return layer_starts_[static_cast<size_t>(step_->first_layer(piece))];
}

// Places the packed sequences take, rounded up.
int64_t GptLearner::places_of(const Batch& batch) const {
  // Sizes count START, STOP, start and all stops as inputs; the last stop is never read, and STOP
  // only where the GPT reads it.
  const int64_t more = conditioning_.size.latents - (config_.compat == "coqui" ? 2 : 1);
  int64_t places = 0;
  for (const int64_t size : batch.sizes) places += size + more;
  return pass_places(places, longest_);
}

int64_t GptLearner::pass_of(const Batch& batch, const StepValues&) const {
  return step_ ? places_of(batch) : 0;
}

at::Tensor GptLearner::condition(const Batch& batch) const {
  if (given_latents_.defined()) return given_latents_;
  const LowPrecision low(config_.precision, device_);
  return conditioning_(batch.fields[gpt_conditioning], voice_lengths(batch)).to(at::kFloat);
}

// Undefined where padding counts as voice.
at::Tensor GptLearner::voice_lengths(const Batch& batch) const {
  return config_.compat == "coqui" ? at::Tensor() : batch.fields[gpt_conditioning_lengths];
}

std::vector<std::string> GptLearner::terms() const {
  if (config_.recall_weight > 0) return {"loss", "text_loss", "mel_loss", "recall_loss"};
  return {"loss", "text_loss", "mel_loss"};
}

at::Tensor GptLearner::whole_loss(const at::Tensor& text, const at::Tensor& audio,
                                  const at::Tensor& recall) const {
  const at::Tensor both = text * config_.text_loss_weight + audio;
  return recall.defined() ? both + recall * config_.recall_weight : both;
}

at::Tensor GptLearner::terms_of(const at::Tensor& text, const at::Tensor& audio,
                                const at::Tensor& recall) const {
  std::vector<at::Tensor> terms = {whole_loss(text, audio, recall), text, audio};
  if (recall.defined()) terms.push_back(recall);
  return at::stack(terms).detach();
}

// What the GPT reads instead of the clips' codes; undefined where it reads those. Its draws are the
// same on all replicas: not of the replica's seed.
at::Tensor GptLearner::read_codes(const Batch& batch, const StepValues& values) const {
  const double share = config_.code_noise.value_or(0);
  if (share <= 0) return {};
  return noisy_codes(batch.fields[gpt_codes], batch.fields[gpt_code_lengths],
                     {.share = share,
                      .kinds = gpt_.size.start_audio_token,
                      .seed = static_cast<uint64_t>(config_.seed),
                      .step = values.step});
}

GptStepBatch GptLearner::step_batch(const Batch& batch, const at::Tensor& latents,
                                    bool first) const {
  const auto& fields = batch.fields;
  return {.latents = latents,
          .text = fields[gpt_text],
          .text_lengths = fields[gpt_text_lengths],
          .codes = fields[gpt_codes],
          .code_lengths = fields[gpt_code_lengths],
          .slice = fields[gpt_slice],
          .whole = fields[gpt_whole][0],
          .places = places_of(batch),
          .overwrites = first};
}

at::Tensor GptLearner::add_gradients(size_t phase, const Batch& batch, const StepValues& values) {
  if (step_) {
    at::Tensor terms;
    for (int piece = 0; piece < step_->pieces(); ++piece)
      terms = add_piece(phase, piece, batch, values);
    return terms;
  }
  const auto& fields = batch.fields;
  const XttsGpt::LearnBatch learned{.text = fields[gpt_text],
                                    .text_lengths = fields[gpt_text_lengths],
                                    .codes = fields[gpt_codes],
                                    .code_lengths = fields[gpt_code_lengths],
                                    .unlearned = fields[gpt_slice],
                                    .conditioning = condition(batch),
                                    .reads_stop = config_.compat != "coqui",
                                    .recalls = config_.recall_weight > 0,
                                    .recompute = config_.recompute};
  // The same for a clip on whatever replica, in whatever part of a batch.
  const CountedDropout dropout{.share = config_.dropout,
                               .seed = values.run_seed,
                               .step = values.step,
                               .rows = row_identity(fields[gpt_codes], fields[gpt_code_lengths])};
  XttsGpt::Learned result;
  {
    const LowPrecision low(config_.precision, device_);
    const XttsGpt gpt = lora_ ? lora_->applied_to(gpt_) : gpt_;
    const at::Tensor read = read_codes(batch, values);
    result =
        read.defined() ? learn_reading(gpt, learned, read, dropout) : gpt.learn(learned, dropout);
  }
  const at::Tensor whole = fields[gpt_whole][0].clamp_min(1);
  const at::Tensor text = result.text_loss / whole[0], audio = result.audio_loss / whole[1];
  const at::Tensor recall =
      result.recall_loss.defined() ? result.recall_loss / whole[1] : at::Tensor();
  (whole_loss(text, audio, recall) * values.scale).backward();
  return terms_of(text, audio, recall);
}

at::Tensor GptLearner::add_piece(size_t, int piece, const Batch& batch, const StepValues& values) {
  if (piece == 0) {
    latents_ = conditioning_step_ ? conditioning_step_->forward(batch.fields[gpt_conditioning],
                                                                voice_lengths(batch))
                                  : condition(batch);
  }
  GptStepBatch packed = step_batch(batch, latents_.detach(), values.first);
  if (piece == 0) packed.read_codes = read_codes(batch, values);
  step_->run_piece(piece, packed, values.step, values.scale, values.seed);
  if (piece + 1 < step_->pieces()) return {};
  const GptStepResult result = step_->result();
  if (conditioning_step_) {
    conditioning_step_->backward(result.latents_gradient, values.first);
  } else if (!given_latents_.defined()) {
    latents_.backward(result.latents_gradient);
  }
  latents_.reset();
  return terms_of(result.losses[0], result.losses[1], result.recall);
}

Measured GptLearner::validate(const Batch& batch) {
  const auto& fields = batch.fields;
  const LowPrecision low(config_.precision, device_);
  const XttsGpt::Learned result = (lora_ ? lora_->applied_to(gpt_) : gpt_)
                                      .learn({.text = fields[gpt_text],
                                              .text_lengths = fields[gpt_text_lengths],
                                              .codes = fields[gpt_codes],
                                              .code_lengths = fields[gpt_code_lengths],
                                              .unlearned = {},
                                              .conditioning = condition(batch),
                                              .reads_stop = config_.compat != "coqui"});
  return {
      at::stack({result.audio_loss, result.text_loss, result.audio_hits, result.stop_hits}),
      at::stack({result.audio_count, result.text_count, result.audio_count, result.stop_count})};
}

XttsGpt GptLearner::current_gpt() const {
  XttsGpt now = lora_ ? lora_->applied_to(gpt_) : gpt_;
  now.visit("gpt.", [](const std::string&, at::Tensor& tensor) {
    tensor = tensor.detach().to(at::kFloat);
  });
  return now;
}

}  // namespace tandem
