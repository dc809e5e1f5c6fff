#include "train/stages/byte_stage.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "device/device_scope.h"
#include "tandem/config.h"

namespace tandem {
namespace {

class ByteLearner final : public Learner {
 public:
  ByteLearner(const ByteGptSize& size, const TrainingConfig& config)
      : model_(ByteGpt::make(size, static_cast<uint64_t>(config.seed))), config_(config) {}

  std::vector<Phase> phases() override {
    Phase phase{.name = "bytes",
                .beta1 = config_.beta1,
                .beta2 = config_.beta2,
                .largest_norm = config_.gradient_clip};
    model_.visit([&](const std::string& name, at::Tensor& tensor) {
      phase.tensors.push_back({name, &tensor});
    });
    return {phase};
  }
  std::vector<std::string> terms() const override { return {"loss"}; }
  std::vector<std::string> measures() const override { return {"loss"}; }

  at::Tensor add_gradients(size_t, const Batch& batch, const StepValues& values) override {
    const double share = static_cast<double>(batch.rows) / static_cast<double>(batch.whole_rows);
    const at::Tensor loss =
        model_.loss(batch.fields[byte_tokens], batch.fields[byte_targets]) * share;
    (loss * values.scale).backward();
    return loss.detach().view({1});
  }
  Measured validate(const Batch& batch) override {
    const at::TensorOptions options = model_.byte_embedding.options().requires_grad(false);
    if (batch.rows == 0) return {at::zeros({1}, options), at::zeros({1}, options)};
    const auto rows = static_cast<double>(batch.rows);
    const at::Tensor loss = model_.loss(batch.fields[byte_tokens].narrow(0, 0, batch.rows),
                                        batch.fields[byte_targets].narrow(0, 0, batch.rows));
    return {(loss * rows).view({1}), at::full({1}, rows, options)};
  }

 private:
  ByteGpt model_;
  const TrainingConfig& config_;
};

}  // namespace

ByteStage::ByteStage(const Config& config)
    : config_(config),
      size_(byte_gpt_size(config.model.size)),
      corpus_(*config.data.train_data, size_.context),
      batches_(corpus_, static_cast<uint64_t>(config.training.seed), config.data.batch_size),
      validation_(corpus_, config.data.batch_size) {}

std::unique_ptr<Learner> ByteStage::make_learner(LogicalDevice&) {
  return std::make_unique<ByteLearner>(size_, config_.training);
}

std::string ByteStage::fingerprint() const {
  return fmt::format("text windows={} validation={}", corpus_.train_windows(),
                     corpus_.validation_windows());
}

int64_t ByteStage::batches_an_epoch() const {
  return std::max<int64_t>(1, corpus_.train_windows() / config_.data.batch_size);
}
int64_t ByteStage::validation_batches() const {
  const int64_t rows = config_.data.batch_size;
  return (std::max<int64_t>(1, corpus_.validation_windows()) + rows - 1) / rows;
}
double ByteStage::tokens_a_batch() const {
  return static_cast<double>(config_.data.batch_size * size_.context);
}

}  // namespace tandem
