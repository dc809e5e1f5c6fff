#include "models/bytes/byte_gpt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "nn/tensors.h"
#include "tandem/config.h"
#include "train/optimizer.h"
#include "train/plan.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

NamedTensors parameters_of(ByteGpt& model) {
  NamedTensors list;
  model.visit(
      [&](const std::string& name, at::Tensor& tensor) { list.emplace_back(name, tensor); });
  return list;
}

int64_t count(ByteGpt& model) {
  int64_t sum = 0;
  for (const auto& [name, parameter] : parameters_of(model)) sum += parameter.numel();
  return sum;
}

at::Tensor some_tokens(int64_t sequences, int64_t places) {
  return (at::arange(sequences * places) * 37 + 11).remainder(256).view({sequences, places});
}

}  // namespace

TEST(ByteGpt, HasTheParametersOfThePlan) {
  const std::map<std::string, int64_t> expected{
      {"tiny", 120'576}, {"small", 842'496}, {"normal", 4'870'144}, {"big", 38'222'848}};
  for (const auto& [size, parameters] : expected) {
    ByteGpt model = ByteGpt::make(byte_gpt_size(size), 0);
    EXPECT_EQ(count(model), parameters) << size;
    Config config;
    config.model.size = size;
    EXPECT_EQ(make_plan(config).parameters, parameters) << size;
  }
}

TEST(ByteGpt, RefusesAnUnknownSize) {
  const Thrown thrown = thrown_by([] { byte_gpt_size("huge"); });
  EXPECT_EQ(thrown.kind, "config");
  EXPECT_EQ(thrown.sentence, "model.size is `huge`; expected tiny, small, normal or big");
}

TEST(ByteGpt, TheSameSeedMakesTheSameModel) {
  ByteGpt a = ByteGpt::make(byte_gpt_size("tiny"), 3), b = ByteGpt::make(byte_gpt_size("tiny"), 3),
          c = ByteGpt::make(byte_gpt_size("tiny"), 4);
  const NamedTensors x = parameters_of(a), y = parameters_of(b), z = parameters_of(c);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].first, y[i].first);
    EXPECT_TRUE(same_bits(x[i].second, y[i].second)) << x[i].first;
  }
  EXPECT_FALSE(same_bits(x[0].second, z[0].second));
}

TEST(ByteGpt, KnowsNothingAtTheStart) {
  const ByteGpt model = ByteGpt::make(byte_gpt_size("tiny"), 0);
  const at::Tensor tokens = some_tokens(8, 65);
  const double loss = number(model.loss(tokens.narrow(1, 0, 64), tokens.narrow(1, 1, 64)));
  EXPECT_NEAR(loss, std::log(256.0), 0.1);
}

TEST(ByteGpt, TheLossIsTheMeanOfMinusTheLogProbabilityOfTheTargets) {
  const ByteGpt model = ByteGpt::make(byte_gpt_size("tiny"), 0);
  const at::Tensor tokens = some_tokens(3, 21);
  const at::Tensor inputs = tokens.narrow(1, 0, 20), targets = tokens.narrow(1, 1, 20);
  const at::Tensor logits = model.logits(inputs).detach().to(at::kDouble);
  double sum = 0;
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t t = 0; t < 20; ++t)
      sum += number(logits[b][t].logsumexp(0) - logits[b][t][targets[b][t].item<int64_t>()]);
  EXPECT_NEAR(number(model.loss(inputs, targets)), sum / 60, 1e-5);
}

TEST(ByteGpt, NoPlaceSeesALaterOne) {
  const ByteGpt model = ByteGpt::make(byte_gpt_size("tiny"), 0);
  const at::Tensor tokens = some_tokens(1, 64), before = model.logits(tokens);
  at::Tensor changed = tokens.clone();
  changed[0][40] = (changed[0][40] + 1).remainder(256);
  const at::Tensor after = model.logits(changed);
  EXPECT_TRUE(same_bits(after.narrow(1, 0, 40), before.narrow(1, 0, 40)));
  EXPECT_GT(largest_difference(after.select(1, 40), before.select(1, 40)), 1e-4);
  EXPECT_GT(largest_difference(after.select(1, 63), before.select(1, 63)), 0);
}

TEST(ByteGpt, EveryParameterHasItsOwnNameAndGetsAGradient) {
  ByteGpt model = ByteGpt::make(byte_gpt_size("tiny"), 0);
  const at::Tensor tokens = some_tokens(2, 65);
  model.loss(tokens.narrow(1, 0, 64), tokens.narrow(1, 1, 64)).backward();
  const NamedTensors parameters = parameters_of(model);
  const std::map<std::string, at::Tensor> by_name(parameters.begin(), parameters.end());
  EXPECT_EQ(by_name.size(), parameters.size());
  EXPECT_EQ(by_name.size(), 2u + 2 * 12 + 2);
  EXPECT_TRUE(by_name.contains("blocks.1.qkv.weight"));
  for (const auto& [name, parameter] : parameters) {
    ASSERT_TRUE(parameter.grad().defined()) << name;
    EXPECT_TRUE(parameter.grad().isfinite().all().item<bool>()) << name;
    EXPECT_GT(number(parameter.grad().abs().max()), 0) << name;
  }
}

TEST(ByteGpt, LearnsOneBatchByHeart) {
  ByteGpt model = ByteGpt::make(byte_gpt_size("tiny"), 0);
  std::vector<TrainedTensor> tensors;
  model.visit([&](const std::string& name, at::Tensor& tensor) {
    tensors.push_back({name, &tensor});
  });
  ParameterStore store(tensors, false);
  Optimizer optimizer(store, {.largest_norm = 1});
  const OptimizerInputs inputs_of_a_step{at::full({}, 3e-3, at::kFloat), at::ones({}, at::kFloat)};
  const at::Tensor text =
      make_parameter(1, "text", {4, 65}, 1000).detach().abs().to(at::kLong).remainder(256);
  const at::Tensor inputs = text.narrow(1, 0, 64), targets = text.narrow(1, 1, 64);
  double loss = 0;
  int step = 0;
  for (; step < 200; ++step) {
    const at::Tensor now = model.loss(inputs, targets);
    loss = number(now);
    if (loss < 0.1) break;
    now.backward();
    optimizer.step(inputs_of_a_step);
  }
  EXPECT_LT(loss, 0.1) << "after " << step << " steps";
}

}  // namespace tandem::tests
