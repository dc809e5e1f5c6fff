#include "nn/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "models/xtts_values.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

const std::vector<float> logits{1.0f, 3.0f, 2.0f, -1.0f};
const std::vector<bool> none(4);

std::vector<int64_t> kept(const SampleOptions& options) {
  std::vector<int64_t> codes;
  for (const CodeChance& code : code_chances(logits, none, options)) codes.push_back(code.code);
  return codes;
}

}  // namespace

// The fixture holds what transformers' own processors leave, as chances.
TEST(Sample, ChancesAreThoseOfTransformers) {
  auto expected = xtts_fixture("sample");
  at::Tensor drawn = values("logits", {6, 60}, 6);
  drawn[5] = (drawn[5] / 4).round();
  const at::Tensor said = whole_numbers("said", {6, 20}, 60);
  for (int64_t test = 0; test < 6; ++test) {
    const std::string of = "." + std::to_string(test);
    const at::Tensor given = expected.at("options" + of), chances = expected.at("chances" + of);
    const auto option = [&](int64_t i) { return given[i].item<double>(); };
    const SampleOptions options{.temperature = option(0),
                                .top_k = static_cast<int64_t>(option(1)),
                                .top_p = option(2),
                                .repetition_penalty = option(3)};
    for (int64_t row = 0; row < 6; ++row) {
      std::vector<bool> seen(60);
      for (const int64_t code : numbers(said[row])) seen[static_cast<size_t>(code)] = true;
      const at::Tensor line = drawn[row].contiguous();
      at::Tensor found = at::zeros({60}, at::kDouble);
      for (const CodeChance& code : code_chances({line.const_data_ptr<float>(), 60}, seen, options))
        found[code.code] = code.chance;
      at::Tensor theirs = chances[row].to(at::kDouble);
      // Which of equal codes top-p leaves out is theirs to say; row 5 is full of them.
      if (row == 5) found = std::get<0>(found.sort()), theirs = std::get<0>(theirs.sort());
      EXPECT_EQ((found > 0).sum().item<int64_t>(), (theirs > 0).sum().item<int64_t>());
      EXPECT_LT((found - theirs).abs().max().item<double>(), 1e-5) << test << ", " << row;
    }
  }
}

TEST(Sample, TopKKeepsAllThatEqualTheKth) {
  const std::vector<float> equal{2, 1, 2, 2, 0};
  const auto chances = code_chances(equal, std::vector<bool>(5), {.top_k = 2});
  EXPECT_EQ(chances.size(), 3u);
}

TEST(Sample, TopPKeepsAtLeastOne) {
  EXPECT_EQ(kept({.top_p = 0}), (std::vector<int64_t>{1}));
  EXPECT_EQ(kept({.top_p = 0.7}), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(kept({}), (std::vector<int64_t>{1, 2, 0, 3}));
}

TEST(Sample, ThePenaltyPushesDownPositiveAndNegativeScores) {
  std::vector<bool> seen(4);
  seen[1] = seen[3] = true;
  const auto chances = code_chances(logits, seen, {.repetition_penalty = 4});
  EXPECT_EQ(chances.front().code, 2);
  EXPECT_EQ(chances.back().code, 3);
  EXPECT_NEAR(std::log(chances.front().chance / chances.back().chance), 2 + 4, 1e-6);
}

TEST(Sample, GreedyTakesTheLikeliestAfterThePenaltyAndTheFirstOfEquals) {
  std::vector<bool> seen(4);
  EXPECT_EQ(sample_code(logits, seen, {.temperature = 9, .top_k = 1, .greedy = true}, 0.99), 1);
  seen[1] = true;
  EXPECT_EQ(sample_code(logits, seen, {.repetition_penalty = 5, .greedy = true}, 0.99), 2);
  EXPECT_EQ(sample_code(std::vector<float>{1, 2, 2}, std::vector<bool>(3), {.greedy = true}, 0), 1);
}

TEST(Sample, DrawsInProportion) {
  std::vector<int64_t> counts(4);
  const int64_t draws = 40000;
  const uint64_t key = draw_key(7);
  for (uint64_t step = 0; step < draws; ++step)
    ++counts[static_cast<size_t>(sample_code(logits, none, {}, draw_unit(key, step)))];
  for (const CodeChance& code : code_chances(logits, none, {})) {
    const double share = static_cast<double>(counts[static_cast<size_t>(code.code)]) / draws;
    EXPECT_NEAR(share, code.chance, 4 * std::sqrt(code.chance / draws));
  }
}

TEST(Sample, DrawsDependOnSeedAndStep) {
  std::set<double> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (uint64_t step = 0; step < 20; ++step) {
      const double unit = draw_unit(draw_key(seed), step);
      EXPECT_TRUE(unit >= 0 && unit < 1);
      seen.insert(unit);
    }
  }
  EXPECT_GT(seen.size(), 398u);
  EXPECT_EQ(draw_unit(draw_key(3), 5), draw_unit(draw_key(3), 5));
}

TEST(Sample, OptionsWithoutAMeaningAreNamed) {
  const auto refused = [](const SampleOptions& options) {
    const Thrown thrown = thrown_by([&] { check_sampling(options); });
    EXPECT_EQ(thrown.kind, "config");
    return thrown.sentence;
  };
  EXPECT_EQ(refused({.temperature = 0}), "temperature is 0; expected a number above 0");
  EXPECT_EQ(refused({.top_p = 1.5}), "top_p is 1.5; expected a share from 0 to 1");
  EXPECT_EQ(refused({.repetition_penalty = -1}),
            "repetition_penalty is -1; expected a number above 0");
  EXPECT_EQ(refused({.top_k = -2}), "top_k is -2; expected a whole number, 0 for all codes");
  check_sampling({.temperature = 0.75, .top_k = 50, .top_p = 0.85, .repetition_penalty = 5});
}

}  // namespace tandem::tests
