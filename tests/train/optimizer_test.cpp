#include <gtest/gtest.h>

#include <cmath>

#include "nn/tensors.h"
#include "train/optimizer.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

// The paper's algorithm for one number, in double precision.
struct ScalarAdamW {
  AdamWOptions options;
  double value, mean = 0, square = 0;
  int steps = 0;
  void step(double gradient) {
    ++steps;
    value -= options.learning_rate * options.weight_decay * value;
    mean = options.beta1 * mean + (1 - options.beta1) * gradient;
    square = options.beta2 * square + (1 - options.beta2) * gradient * gradient;
    const double mean_hat = mean / (1 - std::pow(options.beta1, steps));
    const double square_hat = square / (1 - std::pow(options.beta2, steps));
    value -= options.learning_rate * mean_hat / (std::sqrt(square_hat) + options.epsilon);
  }
};

at::Tensor leaf(std::initializer_list<float> values) {
  return at::tensor(values).requires_grad_(true);
}

// Gradients of very different sizes, the same for everyone.
double gradient_at(int step, int64_t place) {
  return std::sin(step * 1.3 + static_cast<double>(place)) * std::pow(10.0, place % 5 - 3);
}

void set_gradient(const at::Tensor& parameter, int step) {
  at::Tensor gradient = at::empty_like(parameter).detach();
  for (int64_t i = 0; i < gradient.numel(); ++i) gradient[i] = gradient_at(step, i);
  parameter.mutable_grad() = gradient;
}

}  // namespace

TEST(AdamW, IsTheAlgorithmOfThePaper) {
  const AdamWOptions options{.learning_rate = 0.01, .weight_decay = 0.1};
  const at::Tensor parameter = make_parameter(0, "p", {20}, 1.0);
  std::vector<ScalarAdamW> scalars;
  for (int64_t i = 0; i < 20; ++i) scalars.push_back({options, number(parameter[i])});
  AdamW optimizer({{"p", parameter}}, options);
  for (int step = 0; step < 50; ++step) {
    set_gradient(parameter, step);
    optimizer.step();
    for (int64_t i = 0; i < 20; ++i) scalars[static_cast<size_t>(i)].step(gradient_at(step, i));
  }
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_NEAR(number(parameter[i]), scalars[static_cast<size_t>(i)].value, 2e-6) << i;
}

TEST(AdamW, GoesOnFromItsSavedStateBitForBit) {
  const at::Tensor a = make_parameter(0, "p", {20}, 1.0),
                   b = a.detach().clone().requires_grad_(true);
  AdamW first({{"p", a}}, {});
  for (int step = 0; step < 5; ++step) {
    set_gradient(a, step);
    first.step();
  }
  b.detach().copy_(a.detach());
  AdamW second({{"p", b}}, {});
  second.load_state(first.state());
  for (int step = 5; step < 10; ++step) {
    set_gradient(a, step);
    set_gradient(b, step);
    first.step();
    second.step();
  }
  EXPECT_TRUE(same_bits(a, b));
  const NamedTensors state = second.state();
  ASSERT_EQ(state.size(), 3u);
  EXPECT_EQ(state[0].first, "p.mean");
  EXPECT_EQ(state[1].first, "p.square");
  EXPECT_EQ(state[2].first, "p.steps");
  EXPECT_EQ(number(state[2].second), 10);
}

TEST(AdamW, ClipsToTheJointNormAndTellsTheNormBefore) {
  const at::Tensor a = leaf({0, 0}), b = leaf({0});
  AdamW optimizer({{"a", a}, {"b", b}}, {});
  a.mutable_grad() = at::tensor({3.0f, 0.0f});
  b.mutable_grad() = at::tensor({4.0f});
  EXPECT_NEAR(number(optimizer.clip_gradients(1.0)), 5.0, 1e-6);
  EXPECT_NEAR(number(a.grad()[0]), 0.6, 1e-5);
  EXPECT_NEAR(number(b.grad()[0]), 0.8, 1e-5);
}

TEST(AdamW, DoesNotTouchGradientsThatAreSmallEnough) {
  const at::Tensor a = leaf({0, 0});
  AdamW optimizer({{"a", a}}, {});
  const at::Tensor gradient = at::tensor({0.3f, -0.4f});
  a.mutable_grad() = gradient.clone();
  EXPECT_NEAR(number(optimizer.clip_gradients(1.0)), 0.5, 1e-6);
  EXPECT_TRUE(same_bits(a.grad(), gradient));
}

TEST(AdamW, TellsANormThatIsNotFinite) {
  const at::Tensor a = leaf({0});
  AdamW optimizer({{"a", a}}, {});
  a.mutable_grad() = at::tensor({NAN});
  EXPECT_TRUE(std::isnan(number(optimizer.clip_gradients(1.0))));
}

TEST(AdamW, ClearsGradients) {
  const at::Tensor a = leaf({0});
  AdamW optimizer({{"a", a}}, {});
  a.mutable_grad() = at::ones({1});
  EXPECT_TRUE(optimizer.gradients()[0].defined());
  optimizer.clear_gradients();
  EXPECT_FALSE(a.grad().defined());
}

TEST(AdamW, RefusesAStateThatDoesNotFitAndListsWhy) {
  AdamW optimizer({{"a", leaf({0, 0})}, {"b", leaf({0})}}, {});
  NamedTensors state = optimizer.state();
  state[0].second = at::zeros({3});
  state.erase(state.begin() + 4);
  const Thrown thrown = thrown_by([&] { optimizer.load_state(state); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_EQ(thrown.sentence,
            "optimizer.safetensors does not fit this model: `a.mean` has shape [3] where [2] was "
            "expected, `b.square` is missing");
  EXPECT_EQ(thrown.hint, "was it saved with another --model-size or --stage?");
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
