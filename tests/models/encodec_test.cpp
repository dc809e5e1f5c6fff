#include "models/musicgen/encodec.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/musicgen/musicgen.h"
#include "models/musicgen_expected.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

Encodec codec_of(const std::string& name, bool with_encoder = true) {
  return Musicgen::load(musicgen_fixture(name), {.with_codec_encoder = with_encoder}).codec;
}

EncodecSize narrow_codec() { return Musicgen::config_of("tiny").codec; }

}  // namespace

// 1 to 3 frames are shorter than the first kernel reflects; tiny has a ratio of 5, odd is causal.
TEST(Encodec, SoundIsThatOfTransformers) {
  for (const std::string& name : musicgen_fixtures()) {
    const Encodec codec = codec_of(name);
    auto expected = musicgen_expected(name);
    size_t compared = 0;
    for (const std::string what : {"1", "2", "3", "4", "6", "30", "few"}) {
      if (!expected.count("codes_" + what)) continue;
      const at::Tensor codes = expected["codes_" + what].to(at::kLong);
      const at::Tensor sound = codec.decode(codes), truth = expected["wav_" + what];
      ASSERT_EQ(sound.sizes(), truth.sizes()) << name << " " << what;
      EXPECT_EQ(sound.size(2), codes.size(2) * codec.size.hop());
      EXPECT_GE(signal_to_noise(sound, truth), 80) << name << " " << what;
      ++compared;
    }
    EXPECT_GE(compared, 5u) << name;
  }
}

TEST(Encodec, CodesAndFeaturesAreThoseOfTransformers) {
  for (const std::string& name : musicgen_fixtures()) {
    const Encodec codec = codec_of(name);
    auto expected = musicgen_expected(name);
    for (const std::string what : {"short", "part", "whole"}) {
      const at::Tensor sound = expected["sound_" + what];
      const at::Tensor truth = expected["encoded_" + what].to(at::kLong);
      EXPECT_LE(farthest(codec.features(sound), expected["features_" + what]), 1e-4)
          << name << " " << what;
      EXPECT_TRUE(at::equal(codec.encode(sound, codec.size.codebooks)[0], truth))
          << name << " " << what;
      EXPECT_TRUE(at::equal(codec.encode(sound, 2)[0], truth.narrow(0, 0, 2)));
    }
  }
}

TEST(Encodec, AClipsSoundDoesNotDependOnTheOthers) {
  const Encodec codec = codec_of("tiny");
  const at::Tensor codes = at::cat(
      {musicgen_expected("tiny")["codes_4"].to(at::kLong), at::full({2, 4, 4}, 5, at::kLong)});
  const at::Tensor together = codec.decode(codes);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(at::equal(together.narrow(0, i, 1), codec.decode(codes.narrow(0, i, 1))));
  const at::Tensor all = codec.encode(together, 4);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(at::equal(all.narrow(0, i, 1), codec.encode(together.narrow(0, i, 1), 4)));
}

// The scale of a weight norm belongs to dimension 0, which of a transposed convolution is the
// inputs.
TEST(Encodec, FoldsTransposedWeightNormOverItsInputs) {
  Encodec made = Encodec::make(narrow_codec(), 5);
  std::map<std::string, at::Tensor> tensors;
  made.visit("", [&](const std::string& name, at::Tensor& tensor) { tensors[name] = tensor; });
  const std::string layer = "decoder.layers.3.conv";
  const at::Tensor v = tensors.at(layer + ".weight");  // [16, 8, 16]
  ASSERT_EQ(v.sizes(), (at::IntArrayRef{16, 8, 16}));
  tensors.erase(layer + ".weight");
  tensors[layer + ".weight_v"] = v;
  tensors[layer + ".weight_g"] = at::arange(1, 17, at::kFloat).view({16, 1, 1});
  Weights weights(tensors);
  const Encodec read = Encodec::load(weights, "", narrow_codec(), true);
  weights.require_complete("codec");
  for (int64_t in = 0; in < 16; ++in) {
    EXPECT_NEAR(read.decoder.stages[0].scale.weight[in].norm().item<double>(),
                static_cast<double>(in + 1), 1e-4);
  }
}

// An odd rest of the trimming falls to the left: one code's sound begins 3 samples early of 5.
TEST(Encodec, TrimsARatioOfFiveUnevenly) {
  EncodecSize size = narrow_codec();
  size.ratios = {5};
  size.residual_layers = 0;
  Encodec codec = Encodec::make(size, 1);
  for (at::Tensor* part :
       {&codec.decoder.first.weight, &codec.decoder.lstm.layers[0].input,
        &codec.decoder.lstm.layers[0].hidden, &codec.decoder.lstm.layers[1].input,
        &codec.decoder.lstm.layers[1].hidden, &codec.decoder.stages[0].scale.weight,
        &codec.decoder.last.weight, &codec.codebooks[0]})
    part->zero_();
  // Code 1 is a pulse that passes every layer unchanged; LSTM gates give nothing.
  codec.codebooks[0][1][0] = 1;
  codec.decoder.first.weight[0][0][3] = 1;
  for (int64_t tap = 0; tap < 10; ++tap)
    codec.decoder.stages[0].scale.weight[0][0][tap] = static_cast<double>(tap + 1);
  codec.decoder.last.weight[0][0][3] = 1;
  at::Tensor codes = at::zeros({1, 1, 8}, at::kLong);
  codes[0][0][4] = 1;
  const at::Tensor sound = codec.decode(codes)[0][0];
  ASSERT_EQ(sound.size(0), 40);
  // Taps 1..10 stand at 4 * 5 - 3 .. + 9.
  EXPECT_EQ(sound[16].item<double>(), 0);
  for (int64_t tap = 0; tap < 10; ++tap)
    EXPECT_FLOAT_EQ(sound[17 + tap].item<float>(), static_cast<float>(tap + 1));
  EXPECT_EQ(sound[27].item<double>(), 0);
}

TEST(Encodec, OtherPaddingsAreOtherSound) {
  Encodec codec = codec_of("tiny");
  const at::Tensor codes = musicgen_expected("tiny")["codes_4"].to(at::kLong);
  const at::Tensor reflected = codec.decode(codes);
  for (const char* padding : {"constant", "replicate"}) {
    codec.size.padding = padding;
    const at::Tensor sound = codec.decode(codes);
    EXPECT_EQ(sound.sizes(), reflected.sizes());
    EXPECT_LE(signal_to_noise(sound, reflected), 60) << padding;
  }
}

TEST(Encodec, RandomCodecsSoundLikeSomething) {
  const Encodec codec = Encodec::make(narrow_codec(), 7);
  const at::Tensor codes = at::arange(200, at::kLong).view({1, 4, 50}).remainder(64);
  const at::Tensor sound = codec.decode(codes);
  const double loud = sound.std().item<double>();
  EXPECT_GT(loud, 0.01);
  EXPECT_LT(loud, 0.5);
  EXPECT_GT(std::get<0>(at::_unique(codec.encode(sound, 4))).numel(), 10);
}

TEST(Encodec, RefusesWhatItCannotTake) {
  const Encodec deaf = codec_of("tiny", false);
  const auto sentence = [](const auto& action) {
    const Thrown thrown = thrown_by(action);
    EXPECT_EQ(thrown.kind, "internal");
    return thrown.sentence;
  };
  EXPECT_EQ(sentence([&] {
              deaf.features(at::zeros({1, 1, 10}));
            }),
            "the codec was loaded without its encoder");
  EXPECT_EQ(sentence([&] {
              deaf.decode(at::zeros({1, 5, 3}, at::kLong));
            }),
            "codes to decode are [clips, 1 to 4 codebooks, frames]");
  EXPECT_EQ(sentence([&] {
              deaf.decode(at::zeros({1, 4, 0}, at::kLong));
            }),
            "codes to decode are [clips, 1 to 4 codebooks, frames]");
  const Encodec codec = codec_of("tiny");
  EXPECT_EQ(sentence([&] {
              codec.features(at::zeros({1, 2, 10}));
            }),
            "sound to encode is [clips, 1, samples]");
  EXPECT_EQ(sentence([&] {
              codec.encode(at::zeros({1, 1, 10}), 5);
            }),
            "the codec has 4 codebooks, not 5");
}

}  // namespace tandem::tests
