#include "models/musicgen/music_steps.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "models/musicgen_expected.h"
#include "models/musicgen_tokens.h"
#include "support/captured.h"

namespace tandem {
namespace {

using tests::farthest;
using tests::fixture_texts;
using tests::generated;
using tests::run_out;
using tests::small_musicgen;

MusicStepWeights weights_of(const std::string& name) {
  return MusicStepWeights::make(small_musicgen(name).decoder, at::kCPU);
}

at::Tensor random_tokens(const MusicDecoderSize& size, int64_t clips, int64_t columns) {
  return at::randint(0, size.vocabulary + 1, {clips, size.codebooks, columns},
                     at::detail::createCPUGenerator(4), at::kLong);
}

// Five captions of different lengths, the third of none.
std::vector<at::Tensor> some_texts(const Musicgen& model) {
  std::vector<at::Tensor> texts = tests::texts_of(
      model, {{5, 6, 7, 8, 9, 10, 11, 1}, {12, 1}, {1}, {3, 4, 3, 4, 3, 4, 1}, {9, 9, 1}});
  texts[2] = at::Tensor();
  return texts;
}

struct PassRun {
  at::Tensor tokens, codes;
  MusicLogits first;
};
PassRun run(const std::string& name, const std::vector<at::Tensor>& texts, MusicDraws draws,
            const MusicPassOptions& options, const at::Tensor& prompt = {}) {
  const MusicStepWeights weights = weights_of(name);
  MusicPass pass(weights, texts, prompt, draws, options);
  run_out(pass);
  return {pass.tokens(), pass.codes(), pass.first_logits()};
}

const MusicDrawOptions greedy{.greedy = true};

}  // namespace

TEST(MusicSteps, GreedyTokensAreThoseOfTransformers) {
  for (const std::string& name : tests::musicgen_fixtures()) {
    for (const int64_t tokens : {5, 12, 40}) {
      const std::string start = name + "/greedy" + std::to_string(tokens) + "/";
      const PassRun ours =
          run(name, fixture_texts(small_musicgen(name), name), MusicDraws::counted({0, 0, 0}),
              {.draw = greedy, .new_tokens = tokens});
      EXPECT_TRUE(at::equal(ours.tokens, generated(start + "tokens"))) << start;
      EXPECT_TRUE(at::equal(ours.codes, generated(start + "codes"))) << start;
      if (tokens != 12) continue;
      EXPECT_LE(farthest(ours.first.cond, generated(start + "logits_cond")), 2e-5) << start;
      EXPECT_LE(farthest(ours.first.uncond, generated(start + "logits_uncond")), 2e-5) << start;
      EXPECT_LE(farthest(guided_scores(ours.first.cond, ours.first.uncond, 3),
                         generated(start + "logits_cfg")),
                1e-4)
          << start;
    }
  }
}

TEST(MusicSteps, WithoutGuidanceTooAndForAnEmptyCaption) {
  for (const std::string& name : tests::musicgen_fixtures()) {
    std::vector<at::Tensor> texts = fixture_texts(small_musicgen(name), name);
    MusicDrawOptions draw = greedy;
    draw.guidance_scale = 1;
    const PassRun plain =
        run(name, texts, MusicDraws::counted({0, 0, 0}), {.draw = draw, .new_tokens = 12});
    EXPECT_FALSE(plain.first.uncond.defined());
    EXPECT_TRUE(at::equal(plain.tokens, generated(name + "/unguided/tokens"))) << name;
    EXPECT_LE(farthest(plain.first.cond, generated(name + "/unguided/logits_cond")), 2e-5);
    // Its end alone: a caption of its own, not none.
    texts = {texts[0], tests::texts_of(small_musicgen(name), {{1}})[0]};
    const PassRun empty =
        run(name, texts, MusicDraws::counted({0, 0}), {.draw = greedy, .new_tokens = 12});
    EXPECT_TRUE(at::equal(empty.tokens, generated(name + "/empty/tokens"))) << name;
    EXPECT_GT(farthest(empty.first.cond[1], empty.first.uncond[1]), 1e-3) << name;
  }
}

TEST(MusicSteps, DrawnTokensAreThoseOfTransformers) {
  for (const std::string& name : tests::musicgen_fixtures()) {
    const std::vector<at::Tensor> texts = fixture_texts(small_musicgen(name), name);
    const PassRun plain = run(name, texts, MusicDraws::hf(3), {.new_tokens = 40});
    EXPECT_TRUE(at::equal(plain.tokens, generated(name + "/drawn/tokens"))) << name;
    const PassRun warped =
        run(name, texts, MusicDraws::hf(4),
            {.draw = {.temperature = 1.3, .top_p = 0.8, .top_k = 9}, .new_tokens = 30});
    EXPECT_TRUE(at::equal(warped.tokens, generated(name + "/warped/tokens"))) << name;
  }
}

TEST(MusicSteps, GoesOnFromAPromptAsTransformersDoes) {
  for (const std::string& name : tests::musicgen_fixtures()) {
    for (const int64_t tokens : {3, 9}) {
      const std::string start = name + "/continued" + std::to_string(tokens) + "/";
      const PassRun ours =
          run(name, fixture_texts(small_musicgen(name), name), MusicDraws::counted({0, 0, 0}),
              {.draw = greedy, .new_tokens = tokens}, generated(start + "prompt_codes"));
      EXPECT_TRUE(at::equal(ours.tokens, generated(start + "tokens"))) << start;
      EXPECT_TRUE(at::equal(ours.codes, generated(start + "codes"))) << start;
    }
  }
}

TEST(MusicSteps, ColumnsAtOnceOrOneByOneGiveTheSameBits) {
  const Musicgen& model = small_musicgen("tiny");
  const MusicStepWeights weights = weights_of("tiny");
  const at::Tensor tokens = random_tokens(weights.size, 5, 300);  // more rows than one pass takes
  MusicSteps whole(weights, some_texts(model), {.columns = 300});
  const MusicLogits at_once = whole.advance(tokens);
  MusicSteps steps(weights, some_texts(model), {.columns = 300});
  MusicLogits last;
  for (int64_t i = 0; i < 300; ++i) last = steps.advance(tokens.narrow(2, i, 1));
  EXPECT_TRUE(at::equal(at_once.cond, last.cond));
  EXPECT_TRUE(at::equal(at_once.uncond, last.uncond));
}

TEST(MusicSteps, KeptOrComputedAgainGivesTheSameBits) {
  for (const std::string& name : tests::musicgen_fixtures()) {
    const std::vector<at::Tensor> texts = some_texts(small_musicgen(name));
    const MusicPassOptions options{.draw = {.top_k = 0}, .new_tokens = 25};
    MusicPassOptions again = options;
    again.keep = false;
    const auto draws = [] { return MusicDraws::counted({1, 2, 3, 4, 5}); };
    EXPECT_TRUE(at::equal(run(name, texts, draws(), options).tokens,
                          run(name, texts, draws(), again).tokens))
        << name;
  }
}

TEST(MusicSteps, CompanyAndThreadsChangeNoBit) {
  for (const std::string& name : tests::musicgen_fixtures()) {
    const std::vector<at::Tensor> texts = some_texts(small_musicgen(name));
    const MusicStepWeights weights = weights_of(name);
    const at::Tensor tokens = random_tokens(weights.size, 5, 30);
    MusicSteps all(weights, texts, {.columns = 30});
    const MusicLogits together = all.advance(tokens);
    for (int64_t clip = 0; clip < 5; ++clip) {
      const int threads = at::get_num_threads();
      at::set_num_threads(3);
      MusicSteps one(weights, {texts[static_cast<size_t>(clip)]}, {.columns = 40});
      const MusicLogits alone = one.advance(tokens.narrow(0, clip, 1));
      at::set_num_threads(threads);
      EXPECT_TRUE(at::equal(alone.cond[0], together.cond[clip])) << name << " " << clip;
      EXPECT_TRUE(at::equal(alone.uncond[0], together.uncond[clip])) << name << " " << clip;
    }
  }
}

TEST(MusicSteps, NoCaptionIsTheUnconditionalRow) {
  const Musicgen& model = small_musicgen("tiny");
  const MusicStepWeights weights = weights_of("tiny");
  MusicSteps steps(weights, some_texts(model), {.columns = 12});
  const MusicLogits logits = steps.advance(random_tokens(weights.size, 5, 12));
  EXPECT_TRUE(at::equal(logits.cond[2], logits.uncond[2]));
  EXPECT_TRUE(at::isfinite(logits.uncond).all().item<bool>());
  EXPECT_GT(farthest(logits.cond[1], logits.uncond[1]), 1e-3);
}

TEST(MusicSteps, BatchedGivesTheSameButForRounding) {
  for (const std::string& name : tests::musicgen_fixtures()) {
    const std::vector<at::Tensor> texts = some_texts(small_musicgen(name));
    const MusicStepWeights weights = weights_of(name);
    const at::Tensor tokens = random_tokens(weights.size, 5, 30);
    MusicSteps rows(weights, texts, {.columns = 30});
    MusicSteps batched(weights, texts, {.columns = 30, .batched = true});
    rows.advance(tokens.narrow(2, 0, 20));
    batched.advance(tokens.narrow(2, 0, 20));
    for (int64_t i = 20; i < 30; ++i) {
      const at::Tensor column = tokens.narrow(2, i, 1);
      const MusicLogits ours = rows.advance(column), theirs = batched.advance(column);
      EXPECT_LE(farthest(ours.cond, theirs.cond), 2e-5) << name << " " << i;
      EXPECT_LE(farthest(ours.uncond, theirs.uncond), 2e-5) << name << " " << i;
    }
  }
}

TEST(MusicSteps, RefusesColumnsTheModelHasNoPositionFor) {
  const Musicgen& model = small_musicgen("odd");  // 60 positions
  const MusicStepWeights weights = weights_of("odd");
  MusicDraws draws = MusicDraws::counted({0, 0, 0, 0, 0});
  const MusicPassOptions most{.draw = greedy, .new_tokens = 60};
  MusicPass pass(weights, some_texts(model), {}, draws, most);
  run_out(pass);
  EXPECT_EQ(pass.codes().size(2), 58);
  const Error error = error_of([&] {
    MusicPass(weights, some_texts(model), {}, draws, {.draw = greedy, .new_tokens = 61});
  });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_STREQ(error.what(), "61 tokens need as many positions; the model has 60");
  const at::Tensor prompt = at::zeros({5, 3, 50}, at::kLong);
  const Error with_prompt = error_of([&] {
    MusicPass(weights, some_texts(model), prompt, draws, {.draw = greedy, .new_tokens = 11});
  });
  EXPECT_STREQ(with_prompt.what(),
               "61 tokens, 50 of them of the prompt, need as many positions; the model has 60");
  MusicSteps steps(weights, some_texts(model), {.columns = 70});
  const Error past = error_of([&] { steps.advance(random_tokens(weights.size, 5, 61)); });
  EXPECT_STREQ(past.what(), "column 60 has no position: the model has 60");
}

TEST(MusicSteps, RefusesAnActivationItDoesNotKnow) {
  MusicDecoder decoder = small_musicgen("tiny").decoder;
  decoder.size.activation = "swish";
  const MusicStepWeights weights = MusicStepWeights::make(decoder, at::kCPU);
  MusicSteps steps(weights, {at::Tensor()}, {.columns = 2});
  const Error error = error_of([&] { steps.advance(random_tokens(weights.size, 1, 1)); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_NE(std::string(error.what()).find("`swish`; expected `gelu` or `relu`"),
            std::string::npos);
}

TEST(MusicSteps, RefusesToDrawNothing) {
  const MusicStepWeights weights = weights_of("tiny");
  MusicDraws draws = MusicDraws::counted({0});
  EXPECT_STREQ(error_of([&] { MusicPass(weights, {at::Tensor()}, {}, draws, {}); }).what(),
               "0 new tokens; expected 1 or more");
}

}  // namespace tandem
