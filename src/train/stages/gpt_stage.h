// The stage `gpt`: fine-tunes the GPT of a voice, or trains one from nothing.
#pragma once

#include <memory>
#include <optional>

#include "models/xtts/xtts_speak.h"
#include "tandem/config.h"
#include "train/batches/gpt_batches.h"
#include "train/stage.h"
#include "train/stages/gpt_learner.h"
#include "train/voice_parts.h"

namespace tandem {

// Whether the voice of a row comes from another clip.
bool takes_other_clip(const TrainingConfig& training);
// Share of wrong codes for a GPT that was trained before, or was not. A new one learns to stand its
// own errors; one that was trained without keeps what it knows of clean codes.
double code_noise_for(const TrainingConfig& training, bool trained_before);

// Throws Error(config) for low-rank additions to a GPT that knows nothing yet.
void check_lora(const TrainingConfig& training, const std::set<std::string>& trained);

class GptStage final : public Stage {
 public:
  // Throws Error(config | data | io).
  GptStage(const Config& config, LogicalDevice& data_device, const std::string& bad_list);

  void check_device(const LogicalDevice& device) const override;
  void begin() override { training_->bad.begin(); }
  std::unique_ptr<Learner> make_learner(LogicalDevice& device) override;
  BatchMaker& batches() override { return *batches_; }
  int64_t batches_an_epoch() const override { return training_->order.batches_an_epoch(); }
  std::vector<std::string> clips_of(int64_t batch) const override {
    return training_->clips_of(batch);
  }
  BatchMaker* validation() override { return validation_batches_.get(); }
  int64_t validation_batches() const override;
  double tokens_a_batch() const override { return tokens_a_batch_; }
  double seconds_a_batch() const override { return seconds_a_batch_; }
  std::string fingerprint() const override;
  std::string closing_words() const override { return training_->reading_words(); }
  std::vector<std::pair<std::string, std::string>> facts() const override;
  std::vector<Sample> samples(Learner& learner) override;
  void export_model(const NamedTensors& weights, const NamedTensors& buffers,
                    const std::string& folder) override;

 private:
  std::unique_ptr<SpeechFeed> open(bool validation, bool on_host,
                                   const std::string& bad_list) const;
  void measure_batches();
  int64_t longest_text() const;
  struct Line {
    std::string text;
    std::vector<int64_t> ids;
    std::string voice_file;
  };
  std::vector<Line> lines() const;  // to be spoken as samples
  struct Ears {  // of samples, on the GPT's device; the vocoder where it was trained
    Dvae dvae;
    std::optional<Vocoder> vocoder;
  };
  void hear(const Spoken& spoken, const at::Tensor& speaker, const Ears& with,
            Sample& sample) const;

  const Config& config_;
  VoiceParts parts_;
  const TrainingConfig learning_;  // with the noise that fits the GPT it starts from
  std::unique_ptr<SpeechFeed> training_, validation_;
  std::unique_ptr<GptBatches> batches_, validation_batches_;
  std::vector<std::string> sentences_;  // of observe.sample_text, read before the run begins
  GptLargest largest_;
  double tokens_a_batch_ = 0, seconds_a_batch_ = 0, hours_ = 0;
};

}  // namespace tandem
