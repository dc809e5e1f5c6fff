// Learns XTTS's GPT with its conditioning encoder and perceiver: text ids and a slice of the clip
// in, the clip's codes out. On a GPU in bf16 the trunk runs through GptStep and, where it knows the
// widths, the conditioning through ConditioningStep; elsewhere and with LoRA through autograd.
#pragma once

#include <memory>
#include <optional>

#include "models/xtts/conditioning.h"
#include "models/xtts/xtts_gpt.h"
#include "nn/gpt_step/conditioning_step.h"
#include "nn/gpt_step/gpt_step.h"
#include "train/learner.h"
#include "train/rules/lora.h"

namespace tandem {

class LogicalDevice;
struct TrainingConfig;

// The largest batch a replica will see.
struct GptLargest {
  int64_t rows = 0, text = 0, codes = 0;
};

// Throws Error(config) where training.fp8_products is asked for and not to be had. Under the
// device's scope.
void check_fp8_products(const TrainingConfig& config, int64_t width, const LogicalDevice& device);

class GptLearner final : public Learner {
 public:
  // On `device`, whose scope is open. `config` must outlive it.
  GptLearner(const XttsGpt& gpt, const Conditioning& conditioning, const TrainingConfig& config,
             LogicalDevice& device, const GptLargest& largest);
  ~GptLearner() override;

  std::vector<Phase> phases() override;
  void placed(const std::vector<std::vector<TrainedView>>& views) override;
  std::vector<std::string> terms() const override;
  at::Tensor add_gradients(size_t phase, const Batch& batch, const StepValues& values) override;
  int pieces(size_t phase) const override;
  size_t final_from(size_t phase, int piece) const override;
  at::Tensor add_piece(size_t phase, int piece, const Batch& batch,
                       const StepValues& values) override;
  int64_t pass_of(const Batch& batch, const StepValues&) const override;
  std::vector<std::string> measures() const override {
    return {"loss", "text_loss", "accuracy", "stop_accuracy"};
  }
  Measured validate(const Batch& batch) override;

  // For measuring the GPT alone, before anything else is asked: the latents of the voices [B, L, D]
  // float32. The conditioning encoder is neither computed nor trained then.
  void give_latents(at::Tensor latents) { given_latents_ = std::move(latents); }

  bool fused() const { return fused_; }
  uint64_t pass_bytes() const override { return step_ ? step_->buffer_bytes() : 0; }
  // As they are now, in float32 on the learner's device, low-rank additions included.
  XttsGpt current_gpt() const;
  const Conditioning& current_conditioning() const { return conditioning_; }

 private:
  at::Tensor read_codes(const Batch& batch, const StepValues& values) const;
  GptStepBatch step_batch(const Batch& batch, const at::Tensor& latents, bool first) const;
  at::Tensor condition(const Batch& batch) const;
  at::Tensor voice_lengths(const Batch& batch) const;
  // `recall` undefined: there is none.
  at::Tensor whole_loss(const at::Tensor& text, const at::Tensor& audio,
                        const at::Tensor& recall) const;
  at::Tensor terms_of(const at::Tensor& text, const at::Tensor& audio,
                      const at::Tensor& recall) const;
  int64_t places_of(const Batch& batch) const;

  const TrainingConfig& config_;
  LogicalDevice& device_;
  const GptLargest largest_;
  XttsGpt gpt_;
  Conditioning conditioning_;
  std::optional<GptLora> lora_;
  bool fused_ = false, conditions_by_hand_ = false;
  std::unique_ptr<GptStep> step_;
  std::unique_ptr<ConditioningStep> conditioning_step_;
  int64_t longest_ = 0;               // places of a sequence at most
  std::vector<size_t> layer_starts_;  // of each layer's tensors among the phase's
  at::Tensor latents_;                // of the batch in work, with its graph where there is one
  at::Tensor given_latents_;          // see give_latents
};

}  // namespace tandem
