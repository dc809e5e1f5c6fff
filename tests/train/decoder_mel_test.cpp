#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "audio/signal/resample.h"
#include "checkpoint/safetensors.h"
#include "models/xtts_values.h"
#include "nn/tensors.h"
#include "train/stages/gan_losses.h"
#include "train/stages/mel_distance.h"

namespace tandem::tests {
namespace {

Waves as_waves(const at::Tensor& samples, int rate) {
  return {samples, std::vector<int64_t>(static_cast<size_t>(samples.size(0)), samples.size(1)),
          rate};
}

at::Tensor all_of(const at::Tensor& waves) {
  return at::full({waves.size(0)}, waves.size(1), at::kLong);
}

}  // namespace

// The layers with gradients are the front ends everything else uses.
TEST(MelLayer, GivesTheFrontEndsMels) {
  for (const int64_t samples : {4096, 5001}) {
    const at::Tensor waves = values("waves", {2, samples}, 0.3);
    for (const MelOptions& options :
         {mel_of_decoder(24000), mel_speaker_encoder(), mel_xtts_dvae(), mel_xtts_conditioning()}) {
      const at::Tensor expected = log_mel(as_waves(waves, options.sample_rate), options);
      const at::Tensor found = MelLayer(options, at::kCPU)(waves);
      ASSERT_EQ(found.sizes(), expected.sizes());
      EXPECT_LT(largest_difference(found, expected), 2e-3) << options.n_fft << " " << samples;
      EXPECT_GT(decibels(found, expected), 90);
    }
  }
}

TEST(ResampleLayer, GivesTheResampledSound) {
  for (const int64_t samples : {3000, 3001, 3002}) {
    const at::Tensor waves = values("waves", {2, samples}, 0.3);
    for (const auto& [from, to] : {std::pair{24000, 16000}, {22050, 24000}, {16000, 16000}}) {
      const at::Tensor expected = resample(as_waves(waves, from), to).samples;
      const at::Tensor found = ResampleLayer(from, to, at::kCPU)(waves);
      ASSERT_EQ(found.sizes(), expected.sizes()) << from << " " << samples;
      EXPECT_LT(largest_difference(found, expected), 1e-5) << from;
    }
  }
}

TEST(MelDistance, CountsValidPlacesOnly) {
  const at::Tensor a = values("a", {2, 80, 10}), b = values("b", {2, 80, 10});
  const at::Tensor valid = at::tensor({int64_t{10 * 256}, int64_t{3 * 256 + 1}});
  const at::Tensor found = mel_distance(a, b, valid, 256);
  EXPECT_NEAR(number(found[0]), number((a - b)[0].abs().mean()), 1e-6);
  EXPECT_NEAR(number(found[1]), number((a - b)[1].narrow(1, 0, 4).abs().mean()), 1e-6);
  // Nothing valid still divides by one place.
  EXPECT_TRUE(std::isfinite(number(mel_distance(a, b, at::zeros({2}, at::kLong), 256).sum())));
}

// A ripple of A nepers over the mels is one cepstral coefficient: 10 / ln 10 * sqrt(2) * A dB.
// Loudness is not heard as distortion.
TEST(MelDistance, CepstralDistortionOfARippleIsItsHeight) {
  const at::Tensor a = values("a", {1, 80, 6});
  const at::Tensor place = at::arange(80, at::kFloat) + 0.5;
  const auto ripple = [&](int64_t order) {
    return (place * (std::numbers::pi * static_cast<double>(order) / 80)).cos().view({1, 80, 1});
  };
  const at::Tensor valid = at::full({1}, 6 * 256, at::kLong);
  const auto distortion = [&](const at::Tensor& b) {
    return number(cepstral_distortion(a, b, valid, 256).sum());
  };
  EXPECT_NEAR(distortion(a + 0.3 * ripple(5)), 10 / std::log(10) * std::sqrt(2) * 0.3, 1e-4);
  EXPECT_NEAR(distortion(a + 0.3 * ripple(13)), 10 / std::log(10) * std::sqrt(2) * 0.3, 1e-4);
  EXPECT_NEAR(distortion(a + 0.3 * ripple(14)), 0, 1e-4);
  EXPECT_NEAR(distortion(a + 2), 0, 1e-4);
}

TEST(MelDistance, CepstralDistortionIsThatOfScipy) {
  const SafetensorsFile file =
      read_safetensors(TANDEM_SOURCE_DIR "/tests/train/fixtures/quality.safetensors");
  const auto& given = file.tensors;
  const at::Tensor found =
      cepstral_distortion(given.at("first"), given.at("second"), given.at("lengths") * 256, 256);
  EXPECT_LT(number((found - given.at("distortion")).abs().max()), 1e-4);
}

TEST(MelDistance, SpectralDistanceGrowsWithWhatIsWrong) {
  const SpectralDistance distance(at::kCPU);
  const at::Tensor a = values("a", {1, 6000}, 0.3), noise = values("noise", {1, 6000}, 0.3);
  EXPECT_EQ(number(distance(a, a, all_of(a)).sum()), 0);
  const double little = number(distance(a + 0.1 * noise, a, all_of(a)).sum());
  const double much = number(distance(a + noise, a, all_of(a)).sum());
  EXPECT_GT(little, 0.05);
  EXPECT_GT(much, 2 * little);
}

TEST(GanLosses, PaddingDoesNotCount) {
  const at::NoGradGuard no_grad;
  const Discriminators judges = Discriminators::make({.width = 32}, 5);
  const auto folded = judges.fold(at::kFloat);
  const int64_t samples = 12000;
  const at::Tensor real = values("real", {1, samples}, 0.5),
                   fake = values("fake", {1, samples}, 0.5);
  at::Tensor other = fake.clone();
  other.slice(1, 10500) += 0.5;  // out of reach of what is valid
  const at::Tensor valid = at::full({1}, 1500, at::kLong);
  const auto losses = [&](const at::Tensor& generated) {
    const Judgement a = judges.judge(real, folded), b = judges.judge(generated, folded);
    return at::cat(
        {discriminator_loss(a, b, valid), adversarial_loss(b, valid), feature_loss(a, b, valid)});
  };
  const at::Tensor all = at::full({1}, samples, at::kLong);
  EXPECT_LT(largest_difference(losses(fake), losses(other)), 1e-6);
  const Judgement a = judges.judge(real, folded);
  EXPECT_GT(largest_difference(feature_loss(a, judges.judge(fake, folded), all),
                               feature_loss(a, judges.judge(other, folded), all)),
            1e-3);
}

TEST(GanLosses, CosineDistanceIsOfDirections) {
  const at::Tensor a = at::tensor({1.f, 0.f, 3.f, 4.f}).view({2, 2});
  const at::Tensor b = at::tensor({0.f, 2.f, 6.f, 8.f}).view({2, 2});
  EXPECT_LT(largest_difference(cosine_distance(a, b), at::tensor({1.f, 0.f})), 1e-6);
}

}  // namespace tandem::tests
