#include "models/musicgen/music_draw.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/musicgen_tokens.h"
#include "nn/draw_bits.h"
#include "nn/draw_weight.h"
#include "support/captured.h"

namespace tandem {
namespace {

std::span<const float> row_of(const at::Tensor& row) {
  return {row.const_data_ptr<float>(), static_cast<size_t>(row.numel())};
}

struct Way {
  const char* name;
  MusicDrawOptions options;
};

std::vector<Way> ways() {
  return {{"all", {.top_k = 0}},
          {"k5", {.top_k = 5}},
          {"p", {.top_p = 0.7, .top_k = 0}},
          {"least", {.top_p = 0.0, .top_k = 0}},
          {"both", {.temperature = 1.3, .top_p = 0.8, .top_k = 9}},
          {"hot", {.temperature = 2.5, .top_p = 0.95, .top_k = 0}}};
}

// Of the counts of draws against chances; codes that are expected less than 8 times are put
// together.
double chi_square_share(const std::vector<int64_t>& counts, const std::vector<double>& chances,
                        double draws) {
  double sum = 0, rare = 0, rare_expected = 0;
  int cells = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = chances[i] * draws;
    if (expected < 8) {
      rare += static_cast<double>(counts[i]);
      rare_expected += expected;
      continue;
    }
    const double off = static_cast<double>(counts[i]) - expected;
    sum += off * off / expected;
    ++cells;
  }
  if (rare_expected > 8) {
    sum += (rare - rare_expected) * (rare - rare_expected) / rare_expected;
    ++cells;
  }
  // In deviations from what chance gives: mean cells - 1, variance twice that.
  return (sum - (cells - 1)) / std::sqrt(2.0 * (cells - 1));
}

}  // namespace

TEST(MusicDraw, WeightsAreTheExponential) {
  EXPECT_EQ(draw_weight(0.f), 1u << 31);
  EXPECT_EQ(draw_weight(-100.f), 0u);
  EXPECT_EQ(draw_weight(-std::numeric_limits<float>::infinity()), 0u);
  uint32_t before = 1u << 31;
  for (float below = 0; below > -21.9f; below -= 0.003f) {
    const double exact = std::exp(static_cast<double>(below)) * 0x1p31;
    const uint32_t weight = draw_weight(below);
    EXPECT_LE(std::abs(weight - exact), exact * 2.5e-7 + 1) << below;
    EXPECT_LE(weight, before) << below;
    before = weight;
  }
}

TEST(MusicDraw, ChancesAreThoseOfTransformersWarpers) {
  const at::Tensor scores = tests::generated("scores");
  for (const Way& way : ways()) {
    const at::Tensor expected = tests::generated(std::string("chances/") + way.name);
    for (int64_t row = 0; row < scores.size(0); ++row) {
      const std::vector<double> chances = music_chances(row_of(scores[row]), way.options);
      for (size_t code = 0; code < chances.size(); ++code) {
        const double theirs = expected[row][static_cast<int64_t>(code)].item<double>();
        EXPECT_NEAR(chances[code], theirs, 2e-6) << way.name << " " << row << " " << code;
        EXPECT_EQ(chances[code] > 0, theirs > 0) << way.name << " " << row << " " << code;
      }
    }
  }
}

TEST(MusicDraw, EqualOfTheKthStay) {
  const std::vector<float> scores = {1, 3, 2, 2, 0, 2};
  const std::vector<double> chances = music_chances(scores, {.top_k = 2});
  EXPECT_GT(chances[2], 0);
  EXPECT_EQ(chances[2], chances[3]);
  EXPECT_EQ(chances[2], chances[5]);
  EXPECT_EQ(chances[0], 0);
}

TEST(MusicDraw, TopPKeepsTheLikeliestAndThoseEqualToIt) {
  const std::vector<double> chances =
      music_chances(std::vector<float>{1, 3, 2, 3}, {.top_p = 0.0, .top_k = 0});
  EXPECT_EQ(chances, (std::vector<double>{0, 0.5, 0, 0.5}));
}

TEST(MusicDraw, GreedyTakesTheFirstOfEqualsWhateverTheBits) {
  for (const uint64_t bits : {0ull, ~0ull})
    EXPECT_EQ(draw_music_code(std::vector<float>{1, 3, 2, 3}, {.greedy = true}, bits), 1);
}

TEST(MusicDraw, BitsRunThroughTheCodesInTheirOrder) {
  const std::vector<float> scores = {0, 0, 0, 0};
  const MusicDrawOptions options{.top_k = 0};
  EXPECT_EQ(draw_music_code(scores, options, 0), 0);
  EXPECT_EQ(draw_music_code(scores, options, (1ull << 62) - 1), 0);
  EXPECT_EQ(draw_music_code(scores, options, 1ull << 62), 1);
  EXPECT_EQ(draw_music_code(scores, options, ~0ull), 3);
}

TEST(MusicDraw, DrawsFollowTheChances) {
  const at::Tensor row = at::randn({200}, at::detail::createCPUGenerator(5)) * 1.5;
  for (const Way& way : ways()) {
    if (way.options.top_p == 0) continue;  // nothing to draw
    const std::vector<double> chances = music_chances(row_of(row), way.options);
    std::vector<int64_t> counts(200);
    const int draws = 16'000;
    MusicDraws source = MusicDraws::counted({7});
    const at::Tensor scores = row.expand({1, 4, 200}).contiguous();
    for (int step = 0; step < draws / 4; ++step) {
      const at::Tensor codes = source(scores, way.options, step);
      for (int64_t k = 0; k < 4; ++k) ++counts[static_cast<size_t>(codes[0][k].item<int64_t>())];
    }
    for (size_t i = 0; i < counts.size(); ++i)
      EXPECT_TRUE(chances[i] > 0 || counts[i] == 0) << way.name << " " << i;
    EXPECT_LT(std::abs(chi_square_share(counts, chances, draws)), 4) << way.name;
  }
}

TEST(MusicDraw, ADrawIsAFunctionOfSeedStepAndCodebook) {
  const at::Tensor one = at::randn({1, 4, 64}, at::detail::createCPUGenerator(6));
  const at::Tensor three = one.expand({3, 4, 64}).contiguous();
  const MusicDrawOptions options{.top_k = 0};
  const at::Tensor together = MusicDraws::counted({5, 9, 5})(three, options, 11);
  EXPECT_TRUE(at::equal(together[0], together[2]));
  EXPECT_FALSE(at::equal(together[0], together[1]));
  EXPECT_TRUE(at::equal(MusicDraws::counted({9})(one, options, 11)[0], together[1]));
  EXPECT_FALSE(at::equal(MusicDraws::counted({9})(one, options, 12)[0], together[1]));
  const int64_t expected =
      draw_music_code(row_of(one[0][2]), options, draw_bits(music_key(9), 11 * 4 + 2));
  EXPECT_EQ(together[1][2].item<int64_t>(), expected);
}

TEST(MusicDraw, HfDrawsAreThoseOfTorchMultinomial) {
  const at::Tensor scores = tests::generated("scores").unsqueeze(0);  // one clip of 4 codebooks
  const at::Tensor expected = tests::generated("multinomial");
  MusicDraws draws = MusicDraws::hf(77);
  for (int64_t step = 0; step < expected.size(0); ++step) {
    const at::Tensor codes = draws(scores, {.top_k = 0}, step);
    EXPECT_TRUE(at::equal(codes[0], expected[step])) << step;
  }
}

TEST(MusicDraw, GuidanceOfHostAndDeviceIsOneFormula) {
  const at::Tensor cond = at::randn({1, 2, 50}, at::detail::createCPUGenerator(1)),
                   uncond = at::randn({1, 2, 50}, at::detail::createCPUGenerator(2));
  const at::Tensor scores = guided_scores(cond, uncond, 3.7);
  for (int64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(scores[0][1][i].item<float>(),
              guided_score(cond[0][1][i].item<float>(), uncond[0][1][i].item<float>(), 3.7f));
  }
  EXPECT_TRUE(at::equal(guided_scores(cond, {}, 3.7), cond));
}

TEST(MusicDraw, RefusesOptionsWithoutAMeaning) {
  const auto complaint = [](const MusicDrawOptions& options) {
    const Error error = error_of([&] { check_music_draw(options); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return std::string(error.what());
  };
  EXPECT_EQ(complaint({.temperature = 0}), "temperature is 0; expected a number above 0");
  EXPECT_EQ(complaint({.top_p = 1.5}), "top_p is 1.5; expected a share from 0 to 1");
  EXPECT_EQ(complaint({.top_k = -1}), "top_k is -1; expected a whole number, 0 for all codes");
  EXPECT_NE(complaint({.guidance_scale = NAN}).find("guidance_scale"), std::string::npos);
}

TEST(MusicDraw, RefusesLogitsThatAreNoNumbers) {
  const std::vector<float> hollow = {0, NAN, 1}, endless = {0, INFINITY, 1};
  for (const bool greedy : {false, true}) {
    EXPECT_EQ(error_of([&] { draw_music_code(hollow, {.greedy = greedy}, 0); }).kind(),
              ErrorKind::numeric);
    EXPECT_EQ(error_of([&] { draw_music_code(endless, {.greedy = greedy}, 0); }).kind(),
              ErrorKind::numeric);
  }
}

}  // namespace tandem
