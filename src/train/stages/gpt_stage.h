// The stage `gpt`: fine-tunes the GPT of a voice, or trains one from nothing.
#pragma once

#include <memory>

#include "train/batches/gpt_batches.h"
#include "train/stage.h"
#include "train/stages/gpt_learner.h"
#include "train/voice_parts.h"

namespace tandem {

class GptStage final : public Stage {
 public:
  // Throws Error(config | data | io).
  GptStage(const Config& config, LogicalDevice& data_device, const std::string& bad_list);

  std::unique_ptr<Learner> make_learner(LogicalDevice& device) override;
  BatchMaker& batches() override { return *batches_; }
  int64_t batches_an_epoch() const override { return training_->order.batches_an_epoch(); }
  BatchMaker* validation() override { return validation_batches_.get(); }
  int64_t validation_batches() const override;
  double tokens_a_batch() const override { return tokens_a_batch_; }
  double seconds_a_batch() const override { return seconds_a_batch_; }
  std::string fingerprint() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;
  std::vector<Sample> samples(Learner& learner) override;
  void export_model(const NamedTensors& weights, const NamedTensors& buffers,
                    const std::string& folder) override;

 private:
  std::unique_ptr<SpeechFeed> open(bool validation, bool on_host,
                                   const std::string& bad_list) const;
  void measure_batches();
  struct Line {
    std::string text;
    std::vector<int64_t> ids;
    std::string voice_file;
  };
  std::vector<Line> lines() const;  // to be spoken as samples

  const Config& config_;
  VoiceParts parts_;
  std::unique_ptr<SpeechFeed> training_, validation_;
  std::unique_ptr<GptBatches> batches_, validation_batches_;
  GptLargest largest_;
  double tokens_a_batch_ = 0, seconds_a_batch_ = 0, hours_ = 0;
};

}  // namespace tandem
