// Gradients against finite differences, in float64.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "models/xtts/normed_vocoder.h"
#include "models/xtts_narrow.h"
#include "nn/finite_differences.h"
#include "train/stages/gan_losses.h"
#include "train/stages/mel_distance.h"

namespace tandem::tests {

TEST(DecoderGradient, OfTheWeightNormedVocoder) {
  at::set_num_threads(1);  // more only wait for each other over tensors this small
  Vocoder narrow = narrow_vocoder();
  narrow.visit("", [](const std::string&, at::Tensor& t) { t = t.to(at::kDouble); });
  NormedVocoder vocoder(narrow);
  const at::Tensor frames = double_values("frames", {1, 40, 3}),
                   speaker = double_values("speaker", {1, 12}),
                   target = double_values("target", {1, 768}, 0.5);
  const auto loss = [&] {
    return (vocoder.fold(at::kDouble).sound(frames, speaker) - target).square().sum();
  };
  int64_t checked = 0;
  vocoder.visit("", [&](const std::string& name, at::Tensor& tensor) {
    const bool one_of_many = name.find("resblocks.") == 0 && !name.starts_with("resblocks.4.convs");
    if (one_of_many) return;
    expect_slope(name, tensor, loss);
    ++checked;
  });
  EXPECT_EQ(checked, 2 + 2 + 4 * 3 + 4 * 2 + 6 * 3 + 1);
}

// With LibTorch's convolutions, and with our own.
TEST(DecoderGradient, OfTheDiscriminatorsAndTheirLosses) {
  Discriminators judges = Discriminators::make({.width = 32, .periods = {2, 3}, .scales = 2}, 5);
  judges.visit("", [](const std::string&, at::Tensor& t) { t = t.to(at::kDouble); });
  const at::Tensor real = double_values("real", {2, 401}, 0.5);
  at::Tensor fake = double_values("fake", {2, 401}, 0.5);
  const at::Tensor valid = at::tensor({int64_t{401}, int64_t{230}});
  for (const bool by_products : {false, true}) {
    const auto judge = [&](const at::Tensor& waves) {
      return judges.judge(waves, judges.fold(at::kDouble), by_products);
    };
    const auto loss = [&] { return discriminator_loss(judge(real), judge(fake), valid).sum(); };
    expect_slope("scale", judges.discriminators[0].layers[2].scale, loss);
    expect_slope("direction", judges.discriminators[0].layers[2].direction, loss);
    expect_slope("direction of a scale", judges.discriminators[3].layers[4].direction, loss);
    expect_slope("bias", judges.discriminators[2].layers[7].bias, loss);
    expect_slope("fake, adversarial", fake,
                 [&] { return adversarial_loss(judge(fake), valid).sum(); });
    expect_slope("fake, features", fake,
                 [&] { return feature_loss(judge(real), judge(fake), valid).sum(); });
  }
}

TEST(DecoderGradient, OfTheMelAndSpeakerLosses) {
  at::Tensor wave = double_values("wave", {2, 3000}, 0.4);
  const at::Tensor other = double_values("other", {2, 3000}, 0.3);
  const at::Tensor valid = at::tensor({int64_t{3000}, int64_t{1100}});
  const MelLayer mel(mel_of_decoder(24000), at::kCPU), speaker(mel_speaker_encoder(), at::kCPU);
  const ResampleLayer resample(24000, 16000, at::kCPU);
  expect_slope("mel", wave,
               [&] { return mel_distance(mel(wave), mel(other), valid, mel.hop()).sum(); });
  SpeakerEncoder encoder = narrow_speaker_encoder();
  encoder.visit("", [](const std::string&, at::Tensor& t) { t = t.to(at::kDouble); });
  const auto embed = [&](const at::Tensor& x) { return encoder(speaker(resample(x))); };
  expect_slope("speaker", wave, [&] { return cosine_distance(embed(wave), embed(other)).sum(); });
}

TEST(DecoderGradient, OfTheSpectralDistance) {
  const SpectralDistance distance(at::kCPU);
  const at::Tensor recorded = double_values("recorded", {2, 4000}, 0.3);
  at::Tensor generated = double_values("generated", {2, 4000}, 0.3);
  const at::Tensor valid = at::tensor({int64_t{4000}, int64_t{2500}});
  // Of a hundred thousand differences of logarithms some turn their sign within a step.
  expect_slope("generated", generated, [&] { return distance(generated, recorded, valid).sum(); },
               {.share = 3e-4});
  // Equal sounds: nothing to gain, and no number that is not one.
  generated = recorded.clone().requires_grad_(true);
  distance(generated, recorded, valid).sum().backward();
  EXPECT_TRUE(at::isfinite(generated.grad()).all().item<bool>());
}

}  // namespace tandem::tests
