#include "train/stages/codebook.h"

#include <gtest/gtest.h>

#include <limits>

#include "nn/tensors.h"
#include "train/dvae_making.h"

namespace tandem::tests {
namespace {

// A mixture of `kinds` sounds, each a fixed spectrum that lasts 8 frames, with a little noise.
Batch sounds(int64_t step, int64_t kinds) {
  const at::Tensor spectra = values("spectra", {kinds, 16}, 1);
  const at::Tensor which = whole_numbers("sounds " + std::to_string(step), {4, 8}, kinds);
  const at::Tensor mels = spectra.index_select(0, which.view({-1}))
                              .view({4, 8, 16})
                              .repeat_interleave(8, 1)
                              .transpose(1, 2)
                              .contiguous();
  Batch batch{.rows = 4, .whole_rows = 4};
  batch.fields = {mels + values("noise " + std::to_string(step), {4, 16, 64}, 0.1),
                  at::full({4}, 64, at::kLong), at::full({4, 1}, 256.0)};
  return batch;
}

struct Usage {
  double perplexity, reconstruction;
};

struct Moments {
  at::Tensor mean, square;
};

void adam(Learner& learner, std::vector<Moments>& moments, int64_t step, double rate) {
  const at::NoGradGuard no_grad;
  size_t i = 0;
  std::vector<Phase> phases = learner.phases();
  for (TrainedTensor& trained : phases[0].tensors) {
    const at::Tensor gradient = trained.tensor->grad();
    if (moments.size() == i)
      moments.push_back({at::zeros_like(gradient), at::zeros_like(gradient)});
    Moments& m = moments[i++];
    m.mean.mul_(0.9).add_(gradient, 0.1);
    m.square.mul_(0.95).addcmul_(gradient, gradient, 0.05);
    const auto n = static_cast<double>(step);
    const double known = std::sqrt(1 - std::pow(0.95, n)) / (1 - std::pow(0.9, n));
    trained.tensor->addcdiv_(m.mean, m.square.sqrt() + 1e-8, -rate * known);
  }
}

Usage usage_after(int64_t steps, int64_t revive_every) {
  XttsConfig config;
  config.mel_channels = 16;
  config.dvae_width = 8;
  DvaeLearner learner(Dvae::make(config, 3, 32), {.codebook = {.revive_every = revive_every}});
  at::Tensor counts = at::zeros({32}), terms;
  std::vector<Moments> moments;
  for (int64_t step = 1; step <= steps; ++step) {
    clear_gradients(learner);
    terms = learner.add_gradients(0, sounds(step, 24), step_values(step));
    if (step > steps - 20) counts += learner.sums()[0].slice(0, 0, 32);
    adam(learner, moments, step, 8e-3);
    learner.finish_step(step_values(step), taken());
  }
  const at::Tensor share = counts / counts.sum();
  return {number((share * share.clamp_min(1e-12).log()).sum().neg().exp()), number(terms[1])};
}

Codebook::Chosen chosen(const at::Tensor& vectors, const Codebook& codebook) {
  return {.vectors = vectors,
          .codes = codebook.nearest(vectors),
          .real = at::ones({vectors.size(0)}),
          .tickets = at::arange(vectors.size(0)),
          .whole = at::scalar_tensor(static_cast<double>(vectors.size(0)))};
}

at::Tensor named(Codebook& codebook, const std::string& name) {
  for (const auto& [found, tensor] : codebook.buffers())
    if (found == name) return tensor;
  return {};
}

}  // namespace

TEST(Codebook, FindsTheNearestInPiecesToo) {
  const Codebook codebook(values("book", {5, 700}), {}, {}, {});
  const at::Tensor vectors = values("vectors", {300, 5});
  const at::Tensor distance =
      (vectors.unsqueeze(2) - codebook.embed().unsqueeze(0)).square().sum(1);
  EXPECT_TRUE(at::equal(codebook.nearest(vectors), distance.argmin(1)));
  for (const int64_t at_once : {1, 700 * 7})
    EXPECT_TRUE(at::equal(codebook.nearest(vectors, at_once), distance.argmin(1))) << at_once;
  EXPECT_TRUE(
      at::equal(codebook.lookup(at::tensor({int64_t{3}}))[0], codebook.embed().select(1, 3)));
}

TEST(Codebook, StartsFromVectorsOfTheFirstBatches) {
  Codebook codebook(values("book", {4, 16}, 1, 50), {}, {}, {});
  EXPECT_EQ(number(codebook.dead().sum()), 16);
  const at::Tensor vectors = values("vectors", {64, 4});
  codebook.add(chosen(vectors, codebook), step_values(1));
  codebook.update(step_values(1), taken());
  const at::Tensor near = (vectors.t().unsqueeze(2) - codebook.embed().unsqueeze(1))
                              .square()
                              .sum(0)  // [vectors, codes]
                              .sqrt();
  const at::Tensor closest = std::get<0>(near.min(0));
  // One code took all vectors of the batch and lives on; of the others most are such a vector, some
  // a mixture of two that drew nearly the same.
  EXPECT_GE(number((closest < 1e-3).sum()), 11);
  EXPECT_GE(number((closest < 0.7).sum()), 15);
  EXPECT_GT(number(codebook.dead().logical_not().sum()), 14);
}

TEST(Codebook, RevivesOnTimeOnlyAndOnlyTheDead) {
  const at::Tensor embed = values("book", {4, 8});
  at::Tensor sizes = at::ones({8});
  sizes[5] = 1e-4;
  for (const int64_t step : {60, 65}) {
    Codebook codebook(embed, sizes, {}, {.warms_up = false, .revive_every = 20});
    const at::Tensor vectors =
        embed.t().index_select(0, at::tensor({0, 1, 2, 3, 4, 6, 7, 0})) + 0.01;
    codebook.add(chosen(vectors, codebook), step_values(step));
    codebook.update(step_values(step), taken());
    const at::Tensor moved = (codebook.embed() - embed).abs().amax(0);
    EXPECT_EQ(number(moved[5]) > 0.05, step == 60) << step;
    moved[5] = 0;
    EXPECT_LT(number(moved.max()), 0.01) << step;
    EXPECT_NEAR(number(named(codebook, "codebook.cluster_size")[5]), step == 60 ? 0.2 : 1e-4, 1e-5);
  }
}

TEST(Codebook, OtherSeedsAndStepsChooseOtherVectors) {
  const auto revived = [](int64_t step, uint64_t seed) {
    Codebook codebook(values("book", {4, 16}, 1, 50), {}, {}, {});
    StepValues now = step_values(step);
    now.run_seed = seed;
    codebook.add(chosen(values("vectors", {64, 4}), codebook), now);
    codebook.update(now, taken());
    return codebook.embed().clone();
  };
  EXPECT_TRUE(same_bits(revived(1, 5), revived(1, 5)));
  EXPECT_FALSE(at::allclose(revived(1, 5), revived(2, 5), 1e-3, 1e-3));
  EXPECT_FALSE(at::allclose(revived(1, 5), revived(1, 6), 1e-3, 1e-3));
}

TEST(Codebook, LeavesCodesNobodyChoosesWhereTheyAre) {
  const at::Tensor embed = values("book", {4, 8});
  for (const bool keeps : {true, false}) {
    Codebook codebook(embed, {}, {},
                      {.decay = 0.5, .warms_up = false, .keeps_unused = keeps, .revive_every = 0});
    const at::Tensor vectors = embed.t().slice(0, 0, 4).contiguous();
    for (int64_t step = 1; step <= 40; ++step) {
      codebook.add(chosen(vectors, codebook), step_values(step));
      codebook.update(step_values(step), taken());
    }
    const at::Tensor moved = (codebook.embed() - embed).abs().slice(1, 4);
    EXPECT_EQ(number(moved.max()) < 0.02, keeps);
  }
}

TEST(Codebook, AnEmptyOrBrokenStepChangesNothing) {
  for (const int64_t every : {0, 20}) {
    Codebook codebook(values("book", {4, 8}), at::ones({8}), {}, {.revive_every = every});
    const at::Tensor embed = codebook.embed().clone();
    const at::Tensor sizes = named(codebook, "codebook.cluster_size").clone();
    codebook.update(step_values(20), taken());
    at::Tensor vectors = values("vectors", {6, 4});
    vectors[2][1] = std::numeric_limits<float>::quiet_NaN();
    codebook.add(chosen(vectors, codebook), step_values(40));
    codebook.update(step_values(40), taken());
    EXPECT_TRUE(same_bits(codebook.embed(), embed));
    EXPECT_TRUE(same_bits(named(codebook, "codebook.cluster_size"), sizes));
    EXPECT_EQ(number(codebook.sums()[0].abs().max()), 0) << "the next step is a good one again";
  }
}

TEST(Codebook, AStepThatWasLeftOutChangesNothing) {
  Codebook codebook(values("book", {4, 16}, 1, 50), {}, {}, {});
  const at::Tensor embed = codebook.embed().clone();
  codebook.add(chosen(values("vectors", {64, 4}), codebook), step_values(1));
  codebook.update(step_values(1), taken(false));
  EXPECT_TRUE(same_bits(codebook.embed(), embed));
  EXPECT_EQ(number(codebook.sums()[0].abs().max()), 0);
}

TEST(Codebook, RevivesTheSameWhateverReplicaHoldsTheVectors) {
  const at::Tensor vectors = values("vectors", {64, 4});
  const auto revived = [&](int64_t first_replica_rows) {
    Codebook codebook(values("book", {4, 16}, 1, 50), {}, {}, {});
    Codebook::Chosen all = chosen(vectors, codebook);
    for (const auto& [from, to] :
         {std::pair<int64_t, int64_t>{0, first_replica_rows}, {first_replica_rows, 64}}) {
      StepValues of_replica = step_values(1);
      of_replica.seed = static_cast<uint64_t>(from);  // each has one of its own
      codebook.add({.vectors = all.vectors.slice(0, from, to),
                    .codes = all.codes.slice(0, from, to),
                    .real = all.real.slice(0, from, to),
                    .tickets = all.tickets.slice(0, from, to),
                    .whole = all.whole},
                   of_replica);
    }
    codebook.update(step_values(1), taken());
    return codebook.embed().clone();
  };
  EXPECT_LT(largest_difference(revived(64), revived(20)), 1e-5);
}

TEST(Codebook, ContinuesFromTheStatisticsOfAFile) {
  const at::Tensor embed = values("book", {4, 8}), sizes = values("sizes", {8}, 1, 2);
  Codebook codebook(embed, sizes, {}, {.revive_every = 0});
  // A step whose vectors are the codes themselves moves nothing.
  const at::Tensor vectors = embed.t().contiguous();
  codebook.add(chosen(vectors, codebook), step_values(1));
  codebook.update(step_values(1), taken());
  EXPECT_LT(largest_difference(codebook.embed(), embed), 1e-4);
}

TEST(Codebook, StaysInUseWithRevivalAndCollapsesWithout) {
  const Usage alive = usage_after(80, 10), left = usage_after(80, 0);
  EXPECT_GT(alive.perplexity, 16) << "of 32 codes for 24 sounds";
  EXPECT_LT(left.perplexity, alive.perplexity / 3);
  EXPECT_LT(alive.reconstruction, 0.9 * left.reconstruction);
}

}  // namespace tandem::tests
