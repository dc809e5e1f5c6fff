#include "models/xtts/discriminators.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/xtts/normed_vocoder.h"
#include "models/xtts_narrow.h"
#include "nn/tensors.h"
#include "train/stages/gan_losses.h"
#include "train/stages/mel_distance.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

// coqui-tts's first scale divides its weights by an estimate of their largest singular value; as
// weight norm that is a scale of |w| over the estimate.
void take_spectral_norm(Discriminators::Layer& layer, const std::string& name) {
  const at::Tensor w = layer.direction.flatten(1), u = values(name + "u", {w.size(0)});
  const at::Tensor sigma = at::matmul(w.t(), u / u.norm()).norm();
  layer.scale = at::norm_except_dim(layer.direction, 2, 0) / sigma;
}

Discriminators narrow_discriminators() {
  Discriminators made;
  made.size.width = 64;
  made.list("", [](const std::string& name, at::Tensor& tensor, const Shape& shape,
                   const TensorStart&) { tensor = weight(name, shape); });
  auto& layers = made.discriminators[5].layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool last = i + 1 == layers.size();
    take_spectral_norm(
        layers[i], "msd.discriminators.0." + (last ? "conv_post." : fmt::format("convs.{}.", i)));
  }
  return made;
}

// [B * columns, C, H] in coqui-tts's order: [B, C, H * columns].
at::Tensor as_coqui(const at::Tensor& map, int64_t rows) {
  return map.view({rows, -1, map.size(1), map.size(2)}).permute({0, 2, 3, 1}).flatten(2);
}

}  // namespace

TEST(Discriminators, GiveCoquisScoresAndMaps) {
  const at::NoGradGuard no_grad;
  const Discriminators judges = narrow_discriminators();
  auto expected = xtts_fixture("gan");
  const Judgement found = judges.judge(values("real", {2, 1500}, 0.5), judges.fold(at::kFloat));
  ASSERT_EQ(found.maps.size(), 8u);
  for (size_t d = 0; d < found.maps.size(); ++d) {
    const at::Tensor scores = as_coqui(found.maps[d].back().values, 2).flatten(1);
    ASSERT_EQ(scores.sizes(), expected.at(fmt::format("scores.{}", d)).sizes()) << d;
    EXPECT_LT(largest_difference(scores, expected.at(fmt::format("scores.{}", d))), 1e-5) << d;
    for (size_t i = 0; i < found.maps[d].size(); ++i) {
      const std::string name = fmt::format("maps.{}.{}.", d, i);
      const at::Tensor first = expected.at(name + "first");
      const at::Tensor ours = as_coqui(found.maps[d][i].values, 2).select(1, 0);
      EXPECT_LT(largest_difference(ours.narrow(1, 0, first.size(1)), first), 1e-5) << name;
      EXPECT_NEAR(number(found.maps[d][i].values.abs().mean()), number(expected.at(name + "mean")),
                  1e-5)
          << name;
    }
  }
}

// coqui-tts divides by the number of discriminators and of maps.
TEST(Discriminators, LossesAreCoquisTimesTheirCounts) {
  const at::NoGradGuard no_grad;
  const Discriminators judges = narrow_discriminators();
  auto expected = xtts_fixture("gan");
  const auto folded = judges.fold(at::kFloat);
  const Judgement real = judges.judge(values("real", {2, 1500}, 0.5), folded);
  const Judgement fake = judges.judge(values("generated", {2, 1500}, 0.5), folded);
  const at::Tensor valid = at::full({2}, 1500, at::kLong);
  const auto loss = [&](const char* name) {
    return number(expected.at(std::string("loss.") + name));
  };
  EXPECT_NEAR(number(discriminator_loss(real, fake, valid).mean()), 8 * loss("discriminator"),
              1e-4);
  EXPECT_NEAR(number(adversarial_loss(fake, valid).mean()), 8 * loss("adversarial"), 1e-4);
  EXPECT_NEAR(number(feature_loss(real, fake, valid).mean()), 54 * loss("feature"), 1e-3);
  const at::Tensor a = values("a", {2, 9001}, 0.5), b = values("b", {2, 9001}, 0.3);
  const at::Tensor all = at::full({2}, 9001, at::kLong);
  const MelLayer mel(mel_of_decoder(24000), at::kCPU);
  EXPECT_NEAR(number(mel_distance(mel(a), mel(b), all, mel.hop()).mean()), loss("mel"), 1e-5);
  const at::Tensor spectral = SpectralDistance(at::kCPU)(a, b, all);
  for (const int64_t row : {0, 1})
    EXPECT_NEAR(number(spectral[row]), loss(fmt::format("stft.{}", row).c_str()), 1e-4);
}

TEST(Discriminators, APartOfAJudgementIsTheJudgementOfThePart) {
  const at::NoGradGuard no_grad;
  const Discriminators judges = narrow_discriminators();
  const at::Tensor waves = values("waves", {3, 700}, 0.5);
  const auto folded = judges.fold(at::kFloat);
  const Judgement part = part_of(judges.judge(waves, folded), 1, 2, 3);
  const Judgement alone = judges.judge(waves.narrow(0, 1, 2), folded);
  for (size_t d = 0; d < part.maps.size(); ++d)
    for (size_t i = 0; i < part.maps[d].size(); ++i)
      EXPECT_LT(largest_difference(part.maps[d][i].values, alone.maps[d][i].values), 1e-5);
}

// As torch counts those of coqui-tts; weight norm instead of spectral norm adds 4097 scales.
TEST(Discriminators, OfFullWidthHaveCoquisShapes) {
  Discriminators judges;
  int64_t count = 0;
  judges.list("", count_into(count));
  int64_t periods = 0, layers = 0;
  judges.list("",
              [&](const std::string& name, at::Tensor&, const Shape& shape, const TensorStart&) {
                if (name.starts_with("mpd.")) periods += elements(shape);
                if (name == "msd.discriminators.1.convs.2.parametrizations.weight.original1") {
                  EXPECT_EQ(shape, (Shape{256, 8, 41}));
                }
                ++layers;
              });
  EXPECT_EQ(periods, 41105770);
  EXPECT_EQ(count, 41105770 + 29618821 + 4097);
  EXPECT_EQ(layers, 3 * (5 * 6 + 3 * 8));
}

TEST(Discriminators, StartAsDrawnFromTheSeed) {
  Discriminators a = Discriminators::make({.width = 32}, 7),
                 b = Discriminators::make({.width = 32}, 8);
  const at::Tensor w = a.discriminators[0].layers[2].direction;
  EXPECT_FALSE(same_bits(w, b.discriminators[0].layers[2].direction));
  EXPECT_TRUE(
      same_bits(w, Discriminators::make({.width = 32}, 7).discriminators[0].layers[2].direction));
  // Weights start as large as PyTorch's layers do.
  const at::Tensor weight = a.fold(at::kFloat).weights[0][3];
  EXPECT_NEAR(number(weight.square().sum({1, 2}).mean()), 1.0 / 3, 0.01);
}

TEST(Discriminators, RefuseAWidthTheyCannotHave) {
  for (const int64_t width : {0, 16, 100}) {
    const Thrown thrown = thrown_by([&] { Discriminators::make({.width = width}, 1); });
    EXPECT_EQ(thrown.kind, "internal");
    EXPECT_TRUE(contains(thrown.sentence, "expected a multiple of 32")) << thrown.sentence;
  }
}

TEST(NormedVocoder, FoldsBackToTheSameSound) {
  const at::NoGradGuard no_grad;
  const Vocoder vocoder = narrow_vocoder();
  const NormedVocoder normed(vocoder);
  const at::Tensor frames = values("frames", {1, 40, 12}), speaker = values("speaker", {1, 12});
  EXPECT_GT(
      decibels(normed.fold(at::kFloat).sound(frames, speaker), vocoder.sound(frames, speaker)),
      110);
}

// What is trained is a file of Coqui's: loading folds it.
TEST(NormedVocoder, ItsTensorsLoadAsAVocoder) {
  NormedVocoder normed(narrow_vocoder());
  NamedWeights named;
  normed.visit("voc.", [&](const std::string& name, at::Tensor& tensor) {
    named[name] = tensor.dim() == 3 && name.ends_with("original0") ? tensor * 1.5 : tensor;
  });
  EXPECT_EQ(named.count("voc.ups.0.parametrizations.weight.original0"), 1u);
  EXPECT_EQ(named.count("voc.conv_pre.weight"), 1u);
  Weights weights(named);
  const Vocoder loaded = Vocoder::load(weights, "voc.", XttsConfig{});
  weights.require_complete("vocoder");
  const Vocoder before = narrow_vocoder();
  EXPECT_LT(largest_difference(loaded.stages[0].up.weight, before.stages[0].up.weight * 1.5), 1e-6);
  EXPECT_TRUE(same_bits(loaded.pre.weight, before.pre.weight));
}

// The scale of a transposed convolution stands for each input channel.
TEST(NormedVocoder, ScalesInputChannelsOfTransposedConvolutions) {
  NormedVocoder normed(narrow_vocoder());
  normed.visit("", [&](const std::string& name, at::Tensor& tensor) {
    if (name == "ups.1.parametrizations.weight.original0") tensor[3].mul_(2);
  });
  const at::Tensor before = narrow_vocoder().stages[1].up.weight;
  const at::Tensor after = normed.fold(at::kFloat).stages[1].up.weight;
  EXPECT_LT(largest_difference(after[3], before[3] * 2), 1e-6);
  EXPECT_LT(largest_difference(after[2], before[2]), 1e-6);
}

TEST(Vocoder, FramesOfRowsAreThoseOfEachClipAlone) {
  const Vocoder vocoder = narrow_vocoder();
  const at::Tensor latents = values("latents", {4, 60, 40});
  const std::vector<int64_t> lengths{60, 1, 2, 37}, first{100, 0, 2, 5};
  const int64_t count = 40;
  const at::Tensor found = vocoder.frames(latents, at::tensor(lengths), at::tensor(first), count);
  const at::Tensor all = vocoder.frames_of(at::tensor(lengths));
  for (size_t row = 0; row < lengths.size(); ++row) {
    const auto r = static_cast<int64_t>(row);
    const int64_t own = vocoder.frames_of(lengths[row]);
    EXPECT_EQ(all[r].item<int64_t>(), own);
    const int64_t inside = std::min(count, own - first[row]);
    const at::Tensor alone =
        vocoder.frames(latents.narrow(0, r, 1).narrow(1, 0, lengths[row]), first[row], inside);
    EXPECT_TRUE(same_bits(found.narrow(0, r, 1).narrow(2, 0, inside).contiguous(), alone)) << row;
  }
}

TEST(Vocoder, SumsStayFloat32WhereProductsAreHalf) {
  const at::NoGradGuard no_grad;
  const NormedVocoder normed(narrow_vocoder());
  const at::Tensor frames = values("frames", {1, 40, 12}), speaker = values("speaker", {1, 12});
  const at::Tensor exact = normed.fold(at::kFloat).sound(frames, speaker);
  const at::Tensor half = normed.fold(at::kBFloat16).sound(frames, speaker);
  EXPECT_EQ(half.scalar_type(), at::kFloat);
  EXPECT_GT(decibels(half, exact), 25);
  EXPECT_LT(decibels(half, exact), 80);  // products are not float32
}

}  // namespace tandem::tests
