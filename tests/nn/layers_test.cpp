#include "nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "nn/tensors.h"

namespace tandem::tests {
namespace {

// The layers once more, number by number, in double precision. A row is one place: [D].
using Row = std::vector<double>;
using Rows = std::vector<Row>;  // [T, D]

Row row_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous().view({-1});
  return Row(flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
}
Rows rows_of(const at::Tensor& matrix) {
  Rows rows;
  for (int64_t i = 0; i < matrix.size(0); ++i) rows.push_back(row_of(matrix[i]));
  return rows;
}

Row linear(const Linear& layer, const Row& x) {
  Row y = row_of(layer.bias);
  const Rows weight = rows_of(layer.weight);
  for (size_t o = 0; o < y.size(); ++o)
    for (size_t i = 0; i < x.size(); ++i) y[o] += weight[o][i] * x[i];
  return y;
}

Row layer_norm(const LayerNorm& layer, const Row& x) {
  const auto width = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double v : x) mean += v / width;
  for (const double v : x) variance += (v - mean) * (v - mean) / width;
  const Row weight = row_of(layer.weight), bias = row_of(layer.bias);
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = (x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i];
  return y;
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

Rows attention(const Rows& qkv, size_t width, size_t heads) {
  const size_t part = width / heads;
  Rows out(qkv.size(), Row(width, 0.0));
  for (size_t h = 0; h < heads; ++h) {
    for (size_t t = 0; t < qkv.size(); ++t) {
      Row weight;
      double total = 0;
      for (size_t s = 0; s <= t; ++s) {
        double dot = 0;
        for (size_t i = 0; i < part; ++i)
          dot += qkv[t][h * part + i] * qkv[s][width + h * part + i];
        weight.push_back(std::exp(dot / std::sqrt(static_cast<double>(part))));
        total += weight.back();
      }
      for (size_t s = 0; s <= t; ++s)
        for (size_t i = 0; i < part; ++i)
          out[t][h * part + i] += weight[s] / total * qkv[s][2 * width + h * part + i];
    }
  }
  return out;
}

Rows block(const GptBlock& layer, Rows x) {
  Rows qkv;
  for (const Row& row : x) qkv.push_back(linear(layer.qkv, layer_norm(layer.norm_attention, row)));
  const Rows attended = attention(qkv, x[0].size(), static_cast<size_t>(layer.heads));
  for (size_t t = 0; t < x.size(); ++t) {
    const Row into = linear(layer.project, attended[t]);
    for (size_t i = 0; i < into.size(); ++i) x[t][i] += into[i];
    Row wide = linear(layer.expand, layer_norm(layer.norm_mlp, x[t]));
    for (double& v : wide) v = gelu(v);
    const Row back = linear(layer.contract, wide);
    for (size_t i = 0; i < back.size(); ++i) x[t][i] += back[i];
  }
  return x;
}

// Weights far from their start, so that no part is too small to matter.
GptBlock lively_block(int64_t width, int64_t heads) {
  at::NoGradGuard no_grad;
  GptBlock layer = GptBlock::make(1, "b", width, heads, 2);
  uint64_t seed = 0;
  layer.visit("b", [&](const std::string& name, at::Tensor& parameter) {
    parameter.add_(make_parameter(++seed, name, parameter.sizes(), 0.3));
  });
  return layer;
}

}  // namespace

TEST(GptLayers, LinearIsWhatTheBookSays) {
  const Linear layer = Linear::make(1, "l", 5, 3, 0.5);
  const at::Tensor x = at::randn({5});
  const Row expected = linear(layer, row_of(x)), got = row_of(layer(x));
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
}

TEST(GptLayers, LayerNormIsWhatTheBookSays) {
  at::NoGradGuard no_grad;
  LayerNorm layer = LayerNorm::make(1, "n", 16);
  layer.weight.uniform_(0.5, 2.0);
  layer.bias.normal_();
  const at::Tensor x = at::randn({16}) * 3 + 1;
  const Row expected = layer_norm(layer, row_of(x)), got = row_of(layer(x));
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
}

TEST(GptLayers, GptBlockIsWhatTheBookSays) {
  const GptBlock layer = lively_block(16, 4);
  const at::Tensor x = at::randn({2, 7, 16});
  const at::Tensor y = layer(x);
  for (int64_t b = 0; b < 2; ++b) {
    const Rows expected = block(layer, rows_of(x[b])), got = rows_of(y[b]);
    for (size_t t = 0; t < 7; ++t)
      for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(got[t][i], expected[t][i], 2e-4) << t << " " << i;
  }
}

TEST(GptLayers, NoPlaceSeesALaterOne) {
  const GptBlock layer = lively_block(16, 4);
  const at::Tensor x = at::randn({1, 12, 16}), y = layer(x);
  for (const int64_t place : {0, 1, 5, 11}) {
    at::Tensor changed = x.clone();
    changed.select(1, place).normal_();
    const at::Tensor z = layer(changed);
    EXPECT_TRUE(same_bits(z.narrow(1, 0, place), y.narrow(1, 0, place))) << place;
    for (int64_t later = place; later < 12; ++later)
      EXPECT_GT(largest_difference(z.select(1, later), y.select(1, later)), 1e-6) << later;
  }
}

TEST(GptLayers, EveryParameterGetsAFiniteGradientAndAName) {
  GptBlock layer = lively_block(16, 2);
  layer(at::randn({2, 5, 16})).pow(2).sum().backward();
  std::set<std::string> names;
  layer.visit("b", [&](const std::string& name, at::Tensor& parameter) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(name.starts_with("b.")) << name;
    ASSERT_TRUE(parameter.grad().defined()) << name;
    EXPECT_TRUE(parameter.grad().isfinite().all().item<bool>()) << name;
    EXPECT_GT(number(parameter.grad().abs().max()), 0) << name;
  });
  EXPECT_EQ(names.size(), 12u);
}

TEST(GptLayers, ProjectionsIntoTheResidualStartSmallerInDeeperNetworks) {
  const auto deviation = [](int64_t layers) {
    return number(GptBlock::make(0, "b", 128, 4, layers).project.weight.std());
  };
  EXPECT_NEAR(deviation(2), 0.01, 0.0005);
  EXPECT_NEAR(deviation(8), 0.005, 0.0003);
}

}  // namespace tandem::tests
