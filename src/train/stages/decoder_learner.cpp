#include "train/stages/decoder_learner.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "nn/model_parts.h"
#include "train/batches/decoder_batches.h"
#include "train/stages/counted_tensor.h"
#include "train/stages/gan_losses.h"

namespace tandem {
namespace {

constexpr const char* vocoder_prefix = "hifigan_decoder.waveform_decoder.";
constexpr const char* discriminator_prefix = "discriminators.";

template <class Part>
Part moved(Part part, const at::TensorOptions& options) {
  move_to(part, "", options);
  return part;
}

SpokenRows spoken_rows(const Batch& batch) {
  return {.text = batch.fields[gpt_text],
          .text_lengths = batch.fields[gpt_text_lengths],
          .codes = batch.fields[gpt_codes],
          .code_lengths = batch.fields[gpt_code_lengths],
          .conditioning = batch.fields[gpt_conditioning],
          .conditioning_lengths = batch.fields[gpt_conditioning_lengths]};
}

// Sum over the rows that have something.
at::Tensor sum_of(const at::Tensor& losses, const at::Tensor& valid) {
  return at::where(valid > 0, losses, 0).sum();
}

Phase phase_of(const std::string& name, std::vector<TrainedTensor> tensors) {
  // HiFi-GAN's moments. Gradients are large (the mel loss counts 45 times); only what has gone
  // astray is cut.
  return {.name = name,
          .tensors = std::move(tensors),
          .beta1 = 0.8,
          .beta2 = 0.99,
          .largest_norm = 500};
}

VisitParameter into(std::vector<TrainedTensor>& tensors) {
  return [&tensors](const std::string& name, at::Tensor& tensor) {
    const bool decays = tensor.dim() > 1 && !name.ends_with("original0");
    tensors.push_back({.name = name, .tensor = &tensor, .decays = decays});
  };
}

}  // namespace

DecoderLearner::DecoderLearner(const Xtts& xtts, Discriminators discriminators,
                               const at::Device& device, const DecoderLearnerOptions& options)
    : options_(options),
      device_(device),
      vocoder_(moved(xtts.vocoder, device)),
      discriminators_(std::move(discriminators)),
      latents_(moved(xtts.gpt, at::TensorOptions(device).dtype(options.compute)),
               moved(xtts.conditioning, device),
               {.own_codes_share = options.own_codes_share,
                .temperature = xtts.config.sampling.temperature}),
      speaker_encoder_(moved(xtts.speaker_encoder, device)),
      mel_(mel_of_decoder(xtts.config.output_rate), device),
      speaker_mel_(mel_speaker_encoder(), device),
      to_speaker_rate_(xtts.config.output_rate, mel_speaker_encoder().sample_rate, device),
      spectral_(device) {}

std::vector<Phase> DecoderLearner::phases() {
  std::vector<TrainedTensor> judges, generator;
  discriminators_.visit(discriminator_prefix, into(judges));
  vocoder_.visit(vocoder_prefix, into(generator));
  return {phase_of("discriminator", judges), phase_of("generator", generator)};
}

std::vector<std::string> DecoderLearner::terms() const {
  std::vector<std::string> names = {"loss",        "mel",     "feature",
                                    "adversarial", "speaker", "discriminator"};
  if (options_.spectral_weight > 0) names.emplace_back("spectral");
  return names;
}

std::vector<std::string> DecoderLearner::measures() const {
  return {"mel_distance", "mcd_db", "stft_distance", "speaker_similarity"};
}

bool DecoderLearner::judged(const StepValues& values) const {
  return values.number >= options_.discriminator_start;
}

int64_t DecoderLearner::pass_of(const Batch&, const StepValues& values) const {
  return judged(values) ? 1 : 0;
}

WindowSize DecoderLearner::window_of(int64_t codes, int64_t most_judged) const {
  const Vocoder& vocoder = vocoder_.shape();
  const int64_t all = vocoder.frames_of(codes), context = vocoder.context_frames();
  const int64_t judged = std::min(most_judged, all);
  return {.judged = judged,
          .computed = std::min(judged + 2 * context, all),
          .context = context,
          .hop = vocoder.samples_a_frame()};
}

DecoderLearner::Spoken DecoderLearner::speak(const Batch& batch, const at::Tensor& latents,
                                             const WindowSize& size, const at::Tensor& unit) const {
  const Vocoder& shape = vocoder_.shape();
  const at::Tensor& codes = batch.fields[gpt_code_lengths];
  const SoundWindow window =
      place_window(size, shape.frames_of(codes), batch.fields[decoder_wave_lengths], unit);
  const at::Tensor frames = shape.frames(latents, codes, window.computed, size.computed);
  const at::Tensor sound =
      vocoder_.fold(options_.compute).sound(frames, batch.fields[decoder_speakers]);
  const int64_t samples = size.judged * size.hop;
  const at::Tensor judged = cut_rows(sound, (window.first - window.computed) * size.hop, samples);
  const at::Tensor recorded =
      cut_rows(batch.fields[decoder_waves], window.first * size.hop, samples);
  return {silence_beyond(judged, window.valid), silence_beyond(recorded, window.valid),
          window.valid};
}

DecoderLearner::Spoken DecoderLearner::speak_window(const Batch& batch,
                                                    const StepValues& values) const {
  const SpokenRows rows = spoken_rows(batch);
  const at::Tensor latents = latents_(rows, values.step, values.run_seed);
  const at::Tensor unit = counted_units(values.run_seed, "decoder window",
                                        row_identity(rows.codes, rows.code_lengths), values.step);
  const int64_t judged = vocoder_.shape().frames_of(options_.segment_codes);
  return speak(batch, latents, window_of(rows.codes.size(1), judged), unit);
}

DecoderLearner::Spoken DecoderLearner::speak_whole(const Batch& batch) const {
  const at::NoGradGuard no_grad;
  const SpokenRows rows = spoken_rows(batch);
  const int64_t codes = rows.codes.size(1);
  const WindowSize size = window_of(codes, vocoder_.shape().frames_of(codes));
  const at::Tensor start = at::zeros({rows.codes.size(0)}, rows.conditioning.options());
  return speak(batch, latents_.teacher_forced(rows), size, start);
}

at::Tensor DecoderLearner::embed(const at::Tensor& waves) const {
  return speaker_encoder_(speaker_mel_(to_speaker_rate_(waves)));
}

at::Tensor DecoderLearner::add_gradients(size_t phase, const Batch& batch,
                                         const StepValues& values) {
  return phase == 0 ? train_discriminators(batch, values) : train_generator(batch, values);
}

at::Tensor DecoderLearner::train_discriminators(const Batch& batch, const StepValues& values) {
  kept_.reset();
  if (++made_ > 1) divided_ = true;
  const auto spoken = [&] {
    const at::AutoGradMode gradients(!divided_);
    return speak_window(batch, values);
  }();
  if (!divided_) kept_ = spoken;
  const auto count = static_cast<int64_t>(terms().size());
  if (!judged(values)) return at::zeros({count}, spoken.generated.options().dtype(at::kFloat));
  const int64_t rows = spoken.valid.size(0);
  const Judgement both =
      discriminators_.judge(at::cat({spoken.recorded, spoken.generated.detach()}),
                            discriminators_.fold(options_.compute), options_.by_products);
  const at::Tensor losses = discriminator_loss(part_of(both, 0, rows, 2 * rows),
                                               part_of(both, rows, rows, 2 * rows), spoken.valid);
  const at::Tensor loss =
      sum_of(losses, spoken.valid) / static_cast<double>(std::max<int64_t>(1, batch.whole_rows));
  (loss * values.scale).backward();
  return at::constant_pad_nd(loss.detach().view({1}), {5, count - 6});
}

DecoderLearner::Spoken DecoderLearner::take_kept(const Batch& batch, const StepValues& values) {
  made_ = 0;
  std::optional<Spoken> kept = std::exchange(kept_, std::nullopt);
  if (kept && kept->valid.size(0) == batch.fields[gpt_codes].size(0)) return std::move(*kept);
  divided_ = true;
  kept.reset();
  return speak_window(batch, values);
}

at::Tensor DecoderLearner::train_generator(const Batch& batch, const StepValues& values) {
  const Spoken spoken = take_kept(batch, values);
  const auto share = [&](const at::Tensor& losses) {
    return sum_of(losses, spoken.valid) /
           static_cast<double>(std::max<int64_t>(1, batch.whole_rows));
  };
  const auto of_recorded = [&](const auto& measure) {
    const at::NoGradGuard no_grad;
    return measure(spoken.recorded);
  };
  const at::Tensor mel =
      share(mel_distance(mel_(spoken.generated), of_recorded(mel_), spoken.valid, mel_.hop()));
  at::Tensor loss = mel * options_.mel_weight;
  const at::Tensor none = at::zeros({}, mel.options());
  at::Tensor feature = none, adversarial = none, speaker = none, spectral;
  if (options_.spectral_weight > 0) {
    spectral = share(spectral_(spoken.generated, spoken.recorded, spoken.valid));
    loss = loss + spectral * options_.spectral_weight;
  }
  if (judged(values)) {
    const auto folded = [&] {
      const at::NoGradGuard no_grad;
      return discriminators_.fold(options_.compute);
    }();
    const auto judge = [&](const at::Tensor& sound) {
      return discriminators_.judge(sound, folded, options_.by_products);
    };
    const Judgement real = of_recorded(judge), generated = judge(spoken.generated);
    feature = share(feature_loss(real, generated, spoken.valid));
    adversarial = share(adversarial_loss(generated, spoken.valid));
    if (options_.speaker_weight > 0) {
      const auto told = [&](const at::Tensor& sound) { return embed(sound); };
      speaker = share(cosine_distance(embed(spoken.generated), of_recorded(told)));
    }
    loss = loss + (feature * options_.feature_weight + adversarial * options_.adversarial_weight +
                   speaker * options_.speaker_weight);
  }
  (loss * values.scale).backward();
  std::vector<at::Tensor> found = {loss, mel, feature, adversarial, speaker, none};
  if (spectral.defined()) found.push_back(spectral);
  return at::stack(found).detach();
}

Measured DecoderLearner::validate(const Batch& batch) {
  const at::NoGradGuard no_grad;
  const Spoken spoken = speak_whole(batch);
  const at::Tensor& valid = spoken.valid;
  const at::Tensor a = mel_(spoken.generated), b = mel_(spoken.recorded);
  const std::vector<at::Tensor> found = {
      mel_distance(a, b, valid, mel_.hop()), cepstral_distortion(a, b, valid, mel_.hop()),
      spectral_(spoken.generated, spoken.recorded, valid),
      1 - cosine_distance(embed(spoken.generated), embed(spoken.recorded))};
  std::vector<at::Tensor> sums;
  for (const at::Tensor& one : found) sums.push_back(sum_of(one, valid));
  const at::Tensor rows = (valid > 0).sum().to(at::kFloat);
  return {at::stack(sums), rows.expand({static_cast<int64_t>(sums.size())}).contiguous()};
}

}  // namespace tandem
