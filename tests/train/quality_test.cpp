#include "train/rules/quality.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/safetensors.h"
#include "tandem/error.h"

namespace tandem {

namespace {

class Quality : public ::testing::Test {
 protected:
  at::Tensor given(const std::string& name) const { return file_.tensors.at(name); }
  void expect_close(const at::Tensor& ours, const std::string& name, double tolerance) const {
    const at::Tensor expected = given(name).to(at::kDouble);
    ASSERT_EQ(ours.sizes(), expected.sizes()) << name;
    EXPECT_LT((ours.to(at::kDouble) - expected).abs().max().item<double>(), tolerance) << name;
  }
  SafetensorsFile file_ =
      read_safetensors(TANDEM_SOURCE_DIR "/tests/train/fixtures/quality.safetensors");
};

// Probabilities of stop: `level` from place `begin` on, 0.01 before.
at::Tensor stops_from(int64_t begin, int64_t places = 12, double level = 0.9) {
  at::Tensor out = at::full({1, places}, 0.01, at::kFloat);
  out.narrow(1, begin, places - begin).fill_(level);
  return out;
}

}  // namespace

TEST_F(Quality, CepstraAreThoseOfScipy) {
  expect_close(mel_cepstrum(given("first")), "cepstrum.power", 1e-5);
  expect_close(mel_cepstrum(given("first"), {.power = 1}), "cepstrum.magnitude", 1e-5);
}

TEST_F(Quality, DistortionIsThatOfScipy) {
  const at::Tensor ours = cepstral_distortion(given("first"), given("second"), given("lengths"));
  expect_close(ours, "distortion.aligned", 1e-4);
  EXPECT_EQ(ours[2].item<double>(), 0);
}

TEST_F(Quality, WarpedDistortionIsThatOfItsDefinition) {
  const at::Tensor expected = given("distortion.warped");
  EXPECT_NEAR(warped_cepstral_distortion(given("first")[0], given("slow")),
              expected[0].item<double>(), 1e-4);
  EXPECT_NEAR(warped_cepstral_distortion(given("first")[0], given("second")[1]),
              expected[1].item<double>(), 1e-4);
}

TEST_F(Quality, WarpedDistortionForgivesTempoOnly) {
  const at::Tensor clip = given("first")[0];
  EXPECT_NEAR(warped_cepstral_distortion(clip, clip), 0, 1e-5);
  EXPECT_NEAR(warped_cepstral_distortion(clip, clip.repeat_interleave(3, 1)), 0, 1e-5);
  EXPECT_GT(warped_cepstral_distortion(clip, clip.flip({0})), 1);
  EXPECT_THROW(warped_cepstral_distortion(clip, clip.narrow(1, 0, 0)), Error);
}

// The whole point of the factor: an envelope 6 dB up in one half and down in the other.
TEST_F(Quality, DistortionIsInDecibelsOfTheEnvelope) {
  const at::Tensor flat = at::zeros({1, 80, 5});
  const at::Tensor x = (at::arange(80, at::kFloat) + 0.5) * (M_PI / 80);
  const double amplitude = 6 * std::log(10.0) / 10;  // of log power
  const at::Tensor tilted = (at::cos(x) * amplitude).view({1, 80, 1}).expand({1, 80, 5});
  const at::Tensor frames = at::full({1}, 5, at::kLong);
  EXPECT_NEAR(cepstral_distortion(flat, tilted, frames).item<double>(), 6 / std::sqrt(2.0), 1e-4);
  EXPECT_NEAR(cepstral_distortion(flat, flat + 3, frames).item<double>(), 0, 1e-5);  // loudness
}

TEST_F(Quality, CodesAreCountedAsNumpyDoes) {
  const at::Tensor counts = count_codes(given("codes"), 64);
  expect_close(counts, "codes.counts", 1e-6);
  const at::Tensor measures = at::stack({code_usage(counts), code_perplexity(counts)});
  expect_close(measures, "codes.measures", 1e-4);
}

TEST_F(Quality, CodeMeasuresOfPlainCases) {
  EXPECT_NEAR(code_perplexity(at::full({16}, 5.0, at::kFloat)).item<double>(), 16, 1e-4);
  at::Tensor one = at::zeros({16});
  one[3] = 100;
  EXPECT_NEAR(code_perplexity(one).item<double>(), 1, 1e-6);
  EXPECT_NEAR(code_usage(one).item<double>(), 1.0 / 16, 1e-6);
  EXPECT_EQ(code_perplexity(at::zeros({16})).item<double>(), 0);
  EXPECT_EQ(code_usage(at::zeros({16})).item<double>(), 0);
}

TEST_F(Quality, SpeakersAreComparedAsScipyDoes) {
  expect_close(speaker_similarity(given("voices.a"), given("voices.b")), "voices.similar", 1e-6);
  EXPECT_NEAR(speaker_similarity(given("voices.a"), given("voices.a") * 3).min().item<double>(), 1,
              1e-6);
}

TEST_F(Quality, HitsAreCountedWhereThereAreTargets) {
  expect_close(count_hits(given("logits"), given("targets")), "hits", 1e-6);
}

TEST_F(Quality, StopsAreRightWithinOnePlace) {
  const at::Tensor length = at::full({1}, 6, at::kLong);
  for (const int64_t begin : {3, 5, 6, 7, 8}) {
    const at::Tensor judged = judge_stops(stops_from(begin), length);
    EXPECT_EQ(judged[0].item<double>(), std::abs(begin - 6) <= 1 ? 1 : 0) << begin;
    EXPECT_EQ(judged[1].item<double>(), static_cast<double>(begin - 6)) << begin;
    EXPECT_EQ(judged[2].item<double>(), 1);
  }
  // A model that hardly believes in stopping still shows where it would.
  EXPECT_EQ(judge_stops(stops_from(6, 12, 0.05), length)[0].item<double>(), 1);
  // What comes behind the stop targets says nothing.
  at::Tensor later = stops_from(6, 12, 0.2);
  later.narrow(1, 10, 2).fill_(1);
  EXPECT_EQ(judge_stops(later, length)[1].item<double>(), 0);
}

TEST_F(Quality, StopsOfEmptyRowsDoNotCount) {
  const at::Tensor stop = at::cat({stops_from(4), stops_from(2), stops_from(0)});
  const at::Tensor judged = judge_stops(stop, at::tensor({4, 5, 0}, at::kLong));
  EXPECT_TRUE(at::equal(judged, at::tensor({1.0f, -3.0f, 2.0f})));
}

}  // namespace tandem
