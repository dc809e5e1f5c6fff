// The third stage: the vocoder learns to speak GPT latents as the recordings sound, against
// discriminators that learn to tell the two apart. Two phases a step: "discriminator", then
// "generator", which goes on with the sound the first one made. Batches are those of
// batches/decoder_batches.h.
#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "models/xtts/discriminators.h"
#include "models/xtts/normed_vocoder.h"
#include "models/xtts/xtts.h"
#include "train/learner.h"
#include "train/stages/decoder_latents.h"
#include "train/stages/decoder_window.h"
#include "train/stages/mel_distance.h"

namespace tandem {

struct DecoderLearnerOptions {
  at::ScalarType compute = at::kFloat;  // of the GPT and of convolutions; losses are float32
  int64_t segment_codes = 32;           // of the window of a clip that is judged
  double own_codes_share = 0.25;        // of the clips, spoken from the model's own codes
  double mel_weight = 45, feature_weight = 2, adversarial_weight = 1;
  double spectral_weight = 0;       // of distances of spectra in three resolutions; 0: not computed
  double speaker_weight = 1;        // 0: the speaker encoder does not run
  int64_t discriminator_start = 0;  // before this step only mels and spectra train, in less time
  bool by_products = false;         // the discriminators' convolutions, see Discriminators::judge
};

class DecoderLearner final : public Learner {
 public:
  // `xtts` is copied to `device`; `discriminators` are there already.
  DecoderLearner(const Xtts& xtts, Discriminators discriminators, const at::Device& device,
                 const DecoderLearnerOptions& options);

  std::vector<Phase> phases() override;
  std::vector<std::string> terms() const override;
  at::Tensor add_gradients(size_t phase, const Batch& batch, const StepValues& values) override;
  int64_t pass_of(const Batch&, const StepValues& values) const override;
  std::vector<std::string> measures() const override;
  Measured validate(const Batch& batch) override;

  // Sound of a batch and the recordings, aligned, 0 beyond what counts.
  struct Spoken {
    at::Tensor generated, recorded;  // [B, samples] float32
    at::Tensor valid;                // [B] int64, samples that count
  };
  Spoken speak_window(const Batch& batch, const StepValues& values) const;
  Spoken speak_whole(const Batch& batch) const;  // clips from end to end, from their own codes

  const at::Device& device() const { return device_; }

 private:
  Spoken speak(const Batch& batch, const at::Tensor& latents, const WindowSize& size,
               const at::Tensor& unit) const;
  WindowSize window_of(int64_t codes, int64_t most_judged) const;
  Spoken take_kept(const Batch& batch, const StepValues& values);
  at::Tensor train_discriminators(const Batch& batch, const StepValues& values);
  at::Tensor train_generator(const Batch& batch, const StepValues& values);
  at::Tensor embed(const at::Tensor& waves) const;
  bool judged(const StepValues& values) const;

  DecoderLearnerOptions options_;
  at::Device device_;
  NormedVocoder vocoder_;
  Discriminators discriminators_;
  DecoderLatents latents_;
  SpeakerEncoder speaker_encoder_;
  MelLayer mel_, speaker_mel_;
  ResampleLayer to_speaker_rate_;
  SpectralDistance spectral_;

  // What phase 0 made, for phase 1 of the same batch. A batch that is worked on in parts has all of
  // them in phase 0 before the first of phase 1; then nothing is kept, here and from then on: in a
  // captured pass the parts would share one place.
  std::optional<Spoken> kept_;
  int64_t made_ = 0;  // phase 0's since the last of phase 1
  bool divided_ = false;
};

}  // namespace tandem
