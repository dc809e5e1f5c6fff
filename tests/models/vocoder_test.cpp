#include "models/xtts/vocoder.h"

#include <gtest/gtest.h>

#include "models/xtts_narrow.h"
#include "nn/tensors.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

at::Tensor speakers() {
  const at::Tensor drawn = values("speaker", {2, 12});
  return drawn / drawn.norm(2, 1, true);
}

}  // namespace

// One and two codes: the second interpolation changes no length and copies.
TEST(Vocoder, GivesCoquisSound) {
  const at::NoGradGuard no_grad;
  const Vocoder vocoder = narrow_vocoder();
  auto expected = xtts_fixture("vocoder");
  for (const int64_t codes : {1, 2, 9}) {
    const std::string of = "." + std::to_string(codes);
    const at::Tensor found = vocoder(values("latents" + of, {2, codes, 40}, 1.5), speakers());
    ASSERT_EQ(found.sizes(), expected.at("wav" + of).sizes());
    EXPECT_EQ(found.size(1), 256 * vocoder.frames_of(codes));
    EXPECT_GT(decibels(found, expected.at("wav" + of)), 90) << codes << " codes";
  }
}

TEST(Vocoder, CountsFramesAsTheReference) {
  const Vocoder vocoder = narrow_vocoder();
  EXPECT_EQ(vocoder.samples_a_frame(), 256);
  EXPECT_EQ(vocoder.frames_of(1), 4);
  EXPECT_EQ(vocoder.frames_of(3), 13);
  EXPECT_EQ(vocoder.frames_of(602), 2620);  // floor(2408 * 24000 / 22050)
}

// Interpolated by ATen over the whole, against any part at absolute positions.
TEST(Vocoder, FramesOfAPartAreThoseOfTheWhole) {
  const Vocoder vocoder = narrow_vocoder();
  const at::Tensor latents = values("latents", {1, 600, 40});
  const int64_t all = vocoder.frames_of(600);
  at::Tensor whole =
      at::upsample_linear1d(latents.transpose(1, 2), at::IntArrayRef{2400}, false, 4.0);
  whole = at::upsample_linear1d(whole, at::IntArrayRef{all}, false, 24000.0 / 22050.0);
  EXPECT_LT(largest_difference(vocoder.frames(latents, 0, all), whole), 1e-6);
  for (const int64_t first : {int64_t{0}, int64_t{1}, int64_t{777}, int64_t{2543}, all - 1}) {
    const int64_t count = std::min<int64_t>(70, all - first);
    EXPECT_TRUE(same_bits(vocoder.frames(latents, first, count),
                          vocoder.frames(latents, 0, all).narrow(2, first, count).contiguous()))
        << first;
  }
}

TEST(Vocoder, LaterLatentsChangeOnlyFramesThatStandOnTheLastOne) {
  const Vocoder vocoder = narrow_vocoder();
  const at::Tensor latents = values("latents", {1, 50, 40});
  const at::Tensor early = vocoder.frames(latents.narrow(1, 0, 20), 0, vocoder.frames_of(20));
  const at::Tensor late = vocoder.frames(latents, 0, vocoder.frames_of(50));
  // The centre of the last of 20 latents lies 2 of 4 frames before their end.
  const int64_t final_frames = vocoder.frames_of(20) - 4;
  EXPECT_TRUE(same_bits(early.narrow(2, 0, final_frames).contiguous(),
                        late.narrow(2, 0, final_frames).contiguous()));
}

TEST(Vocoder, ReachIsExact) {
  const at::NoGradGuard no_grad;
  const Vocoder vocoder = narrow_vocoder();
  const int64_t reach = vocoder.context_frames(), middle = 20, hop = vocoder.samples_a_frame();
  EXPECT_EQ(reach, 13);
  const at::Tensor frames = values("frames", {1, 40, 41}), speaker = speakers().narrow(0, 0, 1);
  // In float64, so that a change is not lost in rounding.
  Vocoder exact = vocoder;
  exact.visit("", [](const std::string&, at::Tensor& tensor) { tensor = tensor.to(at::kDouble); });
  const auto heard = [&](int64_t changed) {
    at::Tensor other = frames.to(at::kDouble).clone();
    other.select(2, changed).add_(100);
    const at::Tensor a = exact.sound(frames, speaker), b = exact.sound(other, speaker);
    return number((a - b).narrow(1, middle * hop, hop).abs().max());
  };
  EXPECT_EQ(heard(middle - reach - 1), 0);
  EXPECT_EQ(heard(middle + reach + 1), 0);
  EXPECT_TRUE(heard(middle - reach) > 0 || heard(middle + reach) > 0);
}

TEST(Vocoder, WindowsWithTheirContextEqualOnePass) {
  const at::NoGradGuard no_grad;
  const Vocoder vocoder = narrow_vocoder();
  const at::Tensor latents = values("latents", {1, 30, 40}, 1.5);
  const at::Tensor speaker = speakers().narrow(0, 0, 1), whole = vocoder(latents, speaker);
  const int64_t all = vocoder.frames_of(30), hop = vocoder.samples_a_frame();
  const auto windowed = [&](int64_t context) {
    std::vector<at::Tensor> pieces;
    for (int64_t first = 0; first < all; first += 17) {
      const int64_t last = std::min(first + 17, all);
      const int64_t from = std::max<int64_t>(0, first - context),
                    to = std::min(all, last + context);
      const at::Tensor sound = vocoder.sound(vocoder.frames(latents, from, to - from), speaker);
      pieces.push_back(sound.narrow(1, (first - from) * hop, (last - first) * hop));
    }
    return decibels(at::cat(pieces, 1), whole);
  };
  EXPECT_GT(windowed(vocoder.context_frames()), 110);
  EXPECT_LT(windowed(3), 60);  // what too little context costs
}

TEST(Vocoder, SpeedStretchesTheLatents) {
  const at::Tensor latents = values("latents", {1, 30, 40});
  EXPECT_EQ(at_speed(latents, 2.0).size(1), 15);
  EXPECT_EQ(at_speed(latents, 0.5).size(1), 60);
  EXPECT_TRUE(same_bits(at_speed(latents, 1.0), latents));
  const at::Tensor expected =
      at::upsample_linear1d(latents.transpose(1, 2), at::IntArrayRef{24}, false, 1 / 1.25);
  EXPECT_LT(largest_difference(at_speed(latents, 1.25), expected.transpose(1, 2)), 1e-6);
}

TEST(Vocoder, WeightNormIsFolded) {
  NamedWeights named;
  Vocoder listed;
  listed.size = Vocoder::size_of(narrow_config());
  listed.list("", into(named));
  // The transposed convolution's norm runs over outputs and kernel, for each input channel.
  const at::Tensor v = named.at("ups.0.weight"), g = values("g", {v.size(0), 1, 1}, 0.5, 1);
  named.erase("ups.0.weight");
  named["ups.0.parametrizations.weight.original0"] = g;
  named["ups.0.parametrizations.weight.original1"] = v;
  const at::Tensor w = named.at("resblocks.4.convs2.1.weight");
  const at::Tensor scale = w.norm(2, {1, 2}, true) * 3;
  named.erase("resblocks.4.convs2.1.weight");
  named["resblocks.4.convs2.1.weight_g"] = scale;
  named["resblocks.4.convs2.1.weight_v"] = w;
  Weights weights(named);
  const Vocoder vocoder = Vocoder::load(weights, "", XttsConfig{});
  weights.require_complete("vocoder");
  EXPECT_LT(largest_difference(vocoder.stages[0].up.weight, v / v.norm(2, {1, 2}, true) * g), 1e-6);
  EXPECT_LT(largest_difference(vocoder.stages[1].residual[1].second[1].weight, 3 * w), 1e-5);
}

TEST(Vocoder, RefusesKernelsOfAnotherDesign) {
  NamedWeights named;
  Vocoder listed;
  listed.size = Vocoder::size_of(narrow_config());
  listed.list("", into(named));
  named["ups.1.weight"] = at::ones({8, 4, 7});
  Weights weights(named, "x.pth");
  const Thrown thrown = thrown_by([&] { Vocoder::load(weights, "", XttsConfig{}); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(contains(thrown.sentence, "multiples of 4 in `ups`")) << thrown.sentence;
}

}  // namespace tandem::tests
