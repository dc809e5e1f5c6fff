// The stage `bytes`: a small GPT on the bytes of any text. It shows the whole machinery in a
// moment.
#pragma once

#include "data/feed/byte_corpus.h"
#include "models/bytes/byte_gpt.h"
#include "train/stage.h"

namespace tandem {

class ByteStage final : public Stage {
 public:
  explicit ByteStage(const Config& config);

  std::unique_ptr<Learner> make_learner(LogicalDevice& device) override;
  BatchMaker& batches() override { return batches_; }
  int64_t batches_an_epoch() const override;
  BatchMaker* validation() override { return &validation_; }
  int64_t validation_batches() const override;
  double tokens_a_batch() const override;
  std::string fingerprint() const override;
  void export_model(const NamedTensors&, const NamedTensors&, const std::string&) override {}

 private:
  const Config& config_;
  const ByteGptSize size_;
  ByteCorpus corpus_;
  ByteBatches batches_;
  ByteValidation validation_;
};

}  // namespace tandem
