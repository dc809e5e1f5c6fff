#include <gtest/gtest.h>

#include <cmath>

#include "nn/tensors.h"
#include "train/optimizer.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

// The paper's algorithm for one number, in double precision.
struct ScalarAdamW {
  AdamWRule rule;
  double learning_rate = 0, value = 0, mean = 0, square = 0;
  int steps = 0;
  void step(double gradient) {
    ++steps;
    value -= learning_rate * rule.weight_decay * value;
    mean = rule.beta1 * mean + (1 - rule.beta1) * gradient;
    square = rule.beta2 * square + (1 - rule.beta2) * gradient * gradient;
    const double mean_hat = mean / (1 - std::pow(rule.beta1, steps));
    const double square_hat = square / (1 - std::pow(rule.beta2, steps));
    value -= learning_rate * mean_hat / (std::sqrt(square_hat) + rule.epsilon);
  }
};

// Gradients of very different sizes, the same for everyone.
double gradient_at(int step, int64_t place) {
  return std::sin(step * 1.3 + static_cast<double>(place)) * std::pow(10.0, place % 5 - 3);
}

// A store of tensors with an optimizer, and the inputs of its steps.
struct Trained {
  Trained(std::vector<at::Tensor> start, const OptimizerOptions& options, bool average = false,
          bool split = false)
      : tensors(std::move(start)),
        store(named(split), average),
        optimizer(store, options),
        inputs{at::full({}, 0.01, at::kFloat), at::ones({}, at::kFloat)} {}

  std::vector<TrainedTensor> named(bool split) {
    std::vector<TrainedTensor> list;
    for (size_t i = 0; i < tensors.size(); ++i)
      list.push_back({std::string(1, static_cast<char>('a' + i)), &tensors[i], i % 2 == 0, split});
    return list;
  }
  void set_gradients(int step) {
    for (const TrainedView& view : store.views()) {
      at::Tensor gradient = view.gradient.view({-1});
      for (int64_t i = 0; i < gradient.numel(); ++i) gradient[i] = gradient_at(step, i);
    }
  }
  at::Tensor step() { return optimizer.step(inputs); }

  std::vector<at::Tensor> tensors;
  ParameterStore store;
  Optimizer optimizer;
  OptimizerInputs inputs;
};

at::Tensor start_values(int64_t count) { return make_parameter(0, "p", {count}, 1.0).detach(); }

}  // namespace

TEST(Optimizer, IsTheAlgorithmOfThePaperWithDecayWhereItIsWanted) {
  const AdamWRule rule{.weight_decay = 0.1};
  Trained trained({start_values(20), start_values(20)}, {.rule = rule});
  std::vector<ScalarAdamW> with, without;
  for (int64_t i = 0; i < 20; ++i) {
    with.push_back({rule, 0.01, number(trained.tensors[0][i])});
    AdamWRule none = rule;
    none.weight_decay = 0;
    without.push_back({none, 0.01, number(trained.tensors[1][i])});
  }
  for (int step = 0; step < 50; ++step) {
    trained.set_gradients(step);
    trained.step();
    for (int64_t i = 0; i < 20; ++i) {
      with[static_cast<size_t>(i)].step(gradient_at(step, i));
      without[static_cast<size_t>(i)].step(gradient_at(step, i));
    }
  }
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(number(trained.tensors[0][i]), with[static_cast<size_t>(i)].value, 2e-6) << i;
    EXPECT_NEAR(number(trained.tensors[1][i]), without[static_cast<size_t>(i)].value, 2e-6) << i;
  }
}

TEST(Optimizer, GivesWhatPyTorchsFusedAdamWGives) {
  const AdamWRule rule{.weight_decay = 0.1};
  Trained trained({start_values(333)}, {.rule = rule});
  at::Tensor theirs = trained.tensors[0].detach().clone();
  std::vector<at::Tensor> mean = {at::zeros_like(theirs)}, square = {at::zeros_like(theirs)},
                          count = {at::zeros({}, at::kFloat)};
  for (int step = 0; step < 30; ++step) {
    trained.set_gradients(step);
    const at::Tensor gradient = trained.store.views()[0].gradient.clone();
    at::_foreach_add_(count, 1);
    at::_fused_adamw_({theirs}, {gradient}, mean, square, {}, count, 0.01, rule.beta1, rule.beta2,
                      rule.weight_decay, rule.epsilon, false, false);
    trained.step();
  }
  EXPECT_LT((trained.tensors[0].detach() - theirs).abs().max().item<double>(), 1e-5);
}

TEST(Optimizer, KeepsSplitWeightsAsExactAsWholeOnes) {
  Trained whole({start_values(100)}, {}), split({start_values(100)}, {}, false, true);
  for (int step = 0; step < 20; ++step) {
    for (Trained* trained : {&whole, &split}) {
      trained->set_gradients(step);
      trained->step();
    }
  }
  ParameterStore::Snapshot snapshot;
  split.store.copy_to(snapshot);
  EXPECT_TRUE(same_bits(split.store.weights(snapshot)[0].second, whole.tensors[0].detach()));
  EXPECT_EQ(split.tensors[0].scalar_type(), at::kBFloat16);
  // What multiplies is the nearest bfloat16.
  EXPECT_TRUE(same_bits(split.tensors[0], whole.tensors[0].detach().to(at::kBFloat16)));
}

TEST(Optimizer, GoesOnFromItsSavedStateBitForBit) {
  Trained first({start_values(20), start_values(7)}, {}, true);
  for (int step = 0; step < 5; ++step) {
    first.set_gradients(step);
    first.step();
  }
  ParameterStore::Snapshot saved;
  first.store.copy_to(saved);
  Trained second({at::zeros({20}), at::zeros({7})}, {}, true);
  second.store.load(first.store.weights(saved), first.store.moments(saved),
                    first.store.average(saved), "file");
  copy_by_name(first.optimizer.state("phase."), second.optimizer.state("phase."), "file");
  for (int step = 5; step < 10; ++step) {
    for (Trained* trained : {&first, &second}) {
      trained->set_gradients(step);
      trained->step();
    }
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(first.tensors[i], second.tensors[i]));
  EXPECT_TRUE(same_bits(first.store.arenas()[0].average, second.store.arenas()[0].average));
}

TEST(Optimizer, ClipsToTheJointNormAndTellsTheNormBefore) {
  Trained trained({at::zeros({2}), at::zeros({1})}, {.largest_norm = 1});
  trained.store.views()[0].gradient[0] = 3;
  trained.store.views()[1].gradient[0] = 4;
  const at::Tensor outcome = trained.step();
  EXPECT_NEAR(number(outcome[0]), 5, 1e-6);
  EXPECT_EQ(number(outcome[1]), 1);
  // The moments saw the clipped gradients, and the gradients are gone.
  EXPECT_NEAR(number(trained.store.arenas()[0].mean[0]), 0.1 * 0.6, 1e-6);
  EXPECT_EQ(number(trained.store.views()[0].gradient[0]), 0);
}

TEST(Optimizer, LeavesOutAStepThatIsNotFinite) {
  Trained trained({start_values(4)}, {}, true);
  trained.set_gradients(0);
  trained.step();
  const at::Tensor before = trained.tensors[0].detach().clone();
  const at::Tensor mean = trained.store.arenas()[0].mean.clone();
  trained.store.views()[0].gradient[2] = NAN;
  const at::Tensor outcome = trained.step();
  EXPECT_EQ(number(outcome[1]), 0);
  EXPECT_TRUE(same_bits(trained.tensors[0], before));
  EXPECT_TRUE(same_bits(trained.store.arenas()[0].mean, mean));
  EXPECT_EQ(number(trained.store.views()[0].gradient[2]), 0);
}

TEST(Optimizer, DividesByAccumulationAndLossScale) {
  Trained once({start_values(9)}, {}), scaled({start_values(9)}, {});
  scaled.inputs.divisor.fill_(1024);
  once.set_gradients(3);
  scaled.set_gradients(3);
  at::Tensor gradients = scaled.store.arenas()[0].gradient;
  gradients.mul_(1024);
  EXPECT_NEAR(number(once.step()[0]), number(scaled.step()[0]), 1e-6);
  EXPECT_TRUE(same_bits(once.tensors[0], scaled.tensors[0]));
}

TEST(Optimizer, TradesWeightsForTheirAverageAndBack) {
  Trained trained({start_values(6)}, {.rule = {.average_decay = 0.5}}, true);
  const at::Tensor start = trained.tensors[0].detach().clone();
  trained.set_gradients(0);
  trained.step();
  const at::Tensor stepped = trained.tensors[0].detach().clone();
  trained.store.swap_average();
  // In the first step the average keeps 2 / 11 of what it was.
  const at::Tensor expected = stepped + (start - stepped) * (2.0 / 11.0);
  EXPECT_LT((trained.tensors[0].detach() - expected).abs().max().item<double>(), 1e-6);
  trained.store.swap_average();
  EXPECT_TRUE(same_bits(trained.tensors[0], stepped));
}

TEST(ParameterStore, AddsGradientsUpInItsOwnBuffers) {
  at::Tensor a = at::ones({3}), b = at::full({2}, 2.0);
  ParameterStore store({{"a", &a}, {"b", &b}}, false);
  (a * b.sum()).sum().backward();
  (a * 3).sum().backward();
  EXPECT_NEAR(number(store.views()[0].gradient[0]), 7, 1e-6);
  EXPECT_NEAR(number(store.views()[1].gradient[1]), 3, 1e-6);
  EXPECT_EQ(store.count(), 5);
  ASSERT_EQ(store.gradients(1, 2).size(), 1u);
  EXPECT_NEAR(number(store.gradients(1, 2)[0][0]), 3, 1e-6);
}

TEST(ParameterStore, KeepsGradientsInHalfWhereTheyMayBe) {
  at::Tensor a = at::ones({70}), b = at::full({2, 3}, 2.5), c = at::full({9}, 4.0);
  const std::vector<TrainedTensor> tensors = {
      {.name = "a", .tensor = &a},
      {.name = "b", .tensor = &b, .split = true, .half_gradient = true},
      {.name = "c", .tensor = &c, .decays = false, .split = true}};
  ParameterStore store(tensors, false, std::nullopt, /*half_gradients=*/true);
  const auto type = [&](size_t i) { return store.views()[i].gradient.scalar_type(); };
  EXPECT_EQ(type(0), at::kFloat);
  EXPECT_EQ(type(1), at::kBFloat16);
  EXPECT_EQ(type(2), at::kFloat);
  EXPECT_EQ(store.views()[1].gradient.sizes(), b.sizes());
  store.views()[1].gradient.fill_(2);
  Optimizer optimizer(store, {});
  const OptimizerInputs inputs{at::full({}, 0.01, at::kFloat), at::ones({}, at::kFloat)};
  EXPECT_NEAR(number(optimizer.step(inputs)[0]), std::sqrt(24.0), 1e-5);
  ParameterStore::Snapshot snapshot;
  store.copy_to(snapshot);
  const NamedTensors weights = store.weights(snapshot), moments = store.moments(snapshot);
  EXPECT_LT(number(weights[1].second.max()), 2.5);
  EXPECT_EQ(number(weights[2].second.max()), 4.0);
  at::Tensor again[3] = {at::zeros({70}), at::zeros({2, 3}), at::zeros({9})};
  ParameterStore other({{.name = "a", .tensor = &again[0]},
                        {.name = "b", .tensor = &again[1], .split = true, .half_gradient = true},
                        {.name = "c", .tensor = &again[2], .split = true}},
                       false);  // with replicas: all in float32
  EXPECT_EQ(other.views()[1].gradient.scalar_type(), at::kFloat);
  other.load(weights, moments, {}, "file");
  ParameterStore::Snapshot loaded;
  other.copy_to(loaded);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(same_bits(other.weights(loaded)[i].second, weights[i].second)) << i;
}

TEST(ParameterStore, RefusesAStateThatDoesNotFitAndListsWhy) {
  Trained trained({at::zeros({2}), at::zeros({1})}, {});
  ParameterStore::Snapshot snapshot;
  trained.store.copy_to(snapshot);
  NamedTensors moments = trained.store.moments(snapshot);
  moments[0].second = at::zeros({3});
  moments.erase(moments.begin() + 3);
  const Thrown thrown = thrown_by([&] {
    trained.store.load(trained.store.weights(snapshot), moments, {}, "optimizer.safetensors");
  });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_EQ(thrown.sentence,
            "optimizer.safetensors does not fit this model: `a.mean` has shape [3] where [2] was "
            "expected, `b.square` is missing");
  EXPECT_EQ(thrown.hint, "was it saved with another --model-size or --stage?");
}

TEST(Optimizer, RefusesAMemoryOfNormsOfAnotherLength) {
  Trained trained({at::zeros({2})}, {});
  NamedTensors saved = trained.optimizer.state("");
  for (auto& [name, tensor] : saved)
    if (name == "norms") tensor = at::zeros({11});
  const Thrown thrown =
      thrown_by([&] { copy_by_name(saved, trained.optimizer.state(""), "optimizer.safetensors"); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_EQ(thrown.sentence,
            "optimizer.safetensors does not fit this model: `norms` has shape [11] where [100] was "
            "expected");
}

TEST(CopyByName, ListsEightProblemsAndCountsTheRest) {
  NamedTensors target;
  for (int i = 0; i < 11; ++i) target.emplace_back("p" + std::to_string(i), at::zeros({1}));
  const Thrown thrown = thrown_by([&] { copy_by_name({}, target, "model.safetensors"); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(
      thrown.sentence.starts_with("model.safetensors does not fit this model: `p0` is missing"));
  EXPECT_TRUE(thrown.sentence.ends_with("`p7` is missing, and 3 more")) << thrown.sentence;
}

TEST(CopyByName, CopiesNothingWhenOneDoesNotFit) {
  const NamedTensors target{{"a", at::zeros({1})}, {"b", at::zeros({1})}};
  thrown_by([&] { copy_by_name({{"a", at::ones({1})}}, target, "f"); });
  EXPECT_EQ(number(target[0].second), 0);
  copy_by_name({{"b", at::ones({1})}, {"a", at::full({1}, 2.0)}}, target, "f");
  EXPECT_EQ(number(target[0].second), 2);
  EXPECT_EQ(number(target[1].second), 1);
}

}  // namespace tandem::tests
