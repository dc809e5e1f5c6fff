// The stage `decoder`: the vocoder of a voice whose GPT and DVAE are trained. Discriminators live
// in the run's checkpoints only; a model folder gets the vocoder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/config.h"
#include "train/batches/decoder_batches.h"
#include "train/stage.h"
#include "train/stages/decoder_learner.h"
#include "train/voice_parts.h"

namespace tandem {

// The stage's share of the settings.
DecoderLearnerOptions decoder_options(const TrainingConfig& training, const LogicalDevice& device);
// Twice the vocoder's width, as HiFi-GAN has it: 1024 of XTTS v2.
Discriminators::Size discriminators_for(const Vocoder::Size& vocoder);

class DecoderStage final : public Stage {
 public:
  // Throws Error(config) where the voice has no trained GPT or no DVAE, and what opening the voice
  // and the corpus throws.
  DecoderStage(const Config& config, LogicalDevice& data_device, const std::string& bad_list);
  // The same for parts that are open already.
  DecoderStage(const Config& config, VoiceParts parts, bool on_host, const std::string& bad_list);

  void begin() override { training_.feed->bad.begin(); }
  std::unique_ptr<Learner> make_learner(LogicalDevice& device) override;
  BatchMaker& batches() override { return *training_.batches; }
  int64_t batches_an_epoch() const override { return training_.feed->order.batches_an_epoch(); }
  std::vector<std::string> clips_of(int64_t batch) const override {
    return training_.feed->clips_of(batch);
  }
  BatchMaker* validation() override { return validation_.batches.get(); }
  int64_t validation_batches() const override;
  // With discriminators the mel distance is larger and the voice better.
  int64_t compared_from() const override { return config_.training.discriminator_start; }
  double tokens_a_batch() const override;
  const char* token_name() const override { return "codes"; }
  double seconds_a_batch() const override;
  std::string fingerprint() const override;
  std::string closing_words() const override { return training_.feed->reading_words(); }
  std::vector<std::pair<std::string, std::string>> facts() const override;

  // Of some validation clips (training clips where there are none): what the decoder makes of the
  // clip's codes, the recording, and Griffin-Lim's sound from the recording's mels.
  std::vector<Sample> samples(Learner& learner) override;

  void export_model(const NamedTensors& weights, const NamedTensors& buffers,
                    const std::string& folder) override;

 private:
  struct Fed {
    std::unique_ptr<SpeechFeed> feed;
    std::unique_ptr<DecoderBatches> batches;
  };
  enum class Use { training, validation, samples };
  Fed open(Use use, bool on_host, const std::string& bad_list) const;
  void open_samples();

  const Config config_;
  VoiceParts parts_;
  Fed training_, validation_;
  Batch sample_batch_;              // on the CPU; made when it is needed first
  std::vector<std::string> texts_;  // of its clips
  std::vector<Sample> unchanging_;  // recordings and Griffin-Lim's sounds
};

}  // namespace tandem
