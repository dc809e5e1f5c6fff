// The stage that trains the DVAE: mels of the corpus to codes and back.
//
// From nothing it learns with `training.dvae_codes` codes (0: 8 times the model's) and keeps the
// model's number of them, the most used, when it is exported. The DVAE of a model folder is trained
// on as it is: no code is replaced or left out, each keeps its index, since a GPT speaks them.
#pragma once

#include <optional>

#include "tandem/config.h"
#include "train/batches/dvae_batches.h"
#include "train/stage.h"
#include "train/stages/dvae_learner.h"
#include "train/stages/dvae_selection.h"
#include "train/voice_parts.h"

namespace tandem {

// Throws Error(config) for fewer codes than the model of a new DVAE has.
void check_dvae_codes(const TrainingConfig& training, const XttsConfig& model);

class DvaeStage final : public Stage {
 public:
  // Throws Error(config), Error(data), Error(io).
  DvaeStage(const Config& config, LogicalDevice& data_device, const std::string& bad_list);
  // The same with parts at hand.
  DvaeStage(const Config& config, VoiceParts parts, LogicalDevice& data_device,
            const std::string& bad_list);

  void begin() override;
  std::unique_ptr<Learner> make_learner(LogicalDevice& device) override;
  BatchMaker& batches() override { return batches_; }
  int64_t batches_an_epoch() const override { return training_->order.batches_an_epoch(); }
  std::vector<std::string> clips_of(int64_t batch) const override {
    return training_->clips_of(batch);
  }
  BatchMaker* validation() override { return held_out_batches_ ? &*held_out_batches_ : nullptr; }
  int64_t validation_batches() const override;
  double tokens_a_batch() const override;
  const char* token_name() const override { return "frames"; }
  double seconds_a_batch() const override;
  std::string fingerprint() const override;
  std::string closing_words() const override { return training_->reading_words(); }
  std::vector<std::pair<std::string, std::string>> facts() const override;
  // Each clip's mels, then those made of its codes, and how the latter sound by Griffin-Lim; beside
  // them the sound of the mels themselves, which is the best there can be.
  std::vector<Sample> samples(Learner& learner) override;
  void export_model(const NamedTensors& weights, const NamedTensors& buffers,
                    const std::string& folder) override;

  const std::optional<DvaeSelection>& selection() const {
    return selection_;
  }  // of the last export

 private:
  int64_t model_codes() const { return parts_.xtts.config.gpt.audio_tokens - 2; }
  Dvae starting_dvae() const;
  DvaeLearnerOptions learner_options() const;
  const MelClips& clips();  // of what is validated on; read when first needed

  const Config config_;
  VoiceParts parts_;
  bool made_ = false;  // from nothing
  bool measured_ = false;
  Dvae dvae_;  // where training starts, on the CPU
  std::unique_ptr<SpeechFeed> training_, held_out_;
  DvaeBatches batches_;
  std::optional<DvaeBatches> held_out_batches_;
  std::optional<MelClips> clips_;
  std::optional<DvaeSelection> selection_;
};

}  // namespace tandem
