#include "models/xtts/discriminators.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numeric>

#include "nn/flat_conv.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr double slope = 0.1;

struct Plan {
  int64_t out_share, kernel, stride, groups;  // out_share: the widest over this layer's width
};
constexpr Plan period_plans[] = {{32, 5, 3, 1}, {8, 5, 3, 1}, {2, 5, 3, 1},
                                 {1, 5, 3, 1},  {1, 5, 1, 1}, {0, 3, 1, 1}};
constexpr Plan scale_plans[] = {{8, 15, 1, 1},  {8, 41, 2, 4},  {4, 41, 2, 16}, {2, 41, 4, 16},
                                {1, 41, 4, 16}, {1, 41, 1, 16}, {1, 5, 1, 1},   {0, 3, 1, 1}};

// Waves side by side as columns of `period`, each a row of its own: [B, S] -> [B * period, 1, S /
// period]. The end is reflected to fill the last line.
at::Tensor fold_by(const at::Tensor& waves, int64_t period) {
  const int64_t rest = waves.size(1) % period;
  at::Tensor whole = waves;
  if (rest != 0) {
    const int64_t missing = period - rest;
    whole = at::cat({waves, waves.narrow(1, waves.size(1) - 1 - missing, missing).flip(1)}, 1);
  }
  const int64_t lines = whole.size(1) / period;
  return whole.view({-1, lines, period}).transpose(1, 2).reshape({-1, 1, lines});
}

}  // namespace

Judgement part_of(const Judgement& judgement, int64_t first, int64_t rows, int64_t all) {
  Judgement part = judgement;
  for (auto& maps : part.maps) {
    for (Judgement::Map& map : maps) {
      const int64_t columns = map.values.size(0) / all;
      map.values = map.values.narrow(0, first * columns, rows * columns);
    }
  }
  return part;
}

void Discriminators::list(const std::string& prefix, const ListTensor& tensor) {
  const auto fill = [&](const std::string& name, Discriminator& made, const auto& plans) {
    made.layers.resize(std::size(plans));
    int64_t in = 1;
    for (size_t i = 0; i < made.layers.size(); ++i) {
      const Plan& plan = plans[i];
      Layer& layer = made.layers[i];
      const bool last = plan.out_share == 0;
      const int64_t out = last ? 1 : size.width / plan.out_share;
      layer.stride = plan.stride;
      layer.groups = std::gcd(plan.groups, std::gcd(in, out));  // narrow layers have fewer
      Shape shape{out, in / layer.groups, plan.kernel}, ones{out, 1, 1};
      if (made.period > 1) shape.push_back(1), ones.push_back(1);
      const std::string own = last ? name + "conv_post." : fmt::format("{}convs.{}.", name, i);
      // As the norm of a direction that starts as start_for() draws it: one over the square root
      // of 3.
      tensor(own + "parametrizations.weight.original0", layer.scale, ones, {.mean = 0.57735});
      tensor(own + "parametrizations.weight.original1", layer.direction, shape,
             start_for(shape[1] * plan.kernel));
      tensor(own + "bias", layer.bias, {out}, {});
      in = out;
    }
  };
  const size_t periods = size.periods.size();
  discriminators.resize(periods + static_cast<size_t>(size.scales));
  for (size_t i = 0; i < discriminators.size(); ++i) {
    Discriminator& made = discriminators[i];
    made.period = i < periods ? size.periods[i] : 1;
    made.halved = i < periods ? 0 : static_cast<int64_t>(i - periods);
    if (made.period > 1)
      fill(fmt::format("{}mpd.discriminators.{}.", prefix, i), made, period_plans);
    else
      fill(fmt::format("{}msd.discriminators.{}.", prefix, i - periods), made, scale_plans);
  }
}

Discriminators Discriminators::make(const Size& size, uint64_t seed) {
  if (size.width < 32 || size.width % 32 != 0) {
    throw Error(
        ErrorKind::internal,
        fmt::format("discriminators cannot be {} wide; expected a multiple of 32", size.width));
  }
  Discriminators made;
  made.size = size;
  made.list("discriminators.", draw_from(seed));
  return made;
}

void Discriminators::visit(const std::string& prefix, const VisitParameter& visit) {
  list(prefix, pass_to(visit));
}

Discriminators::Folded Discriminators::fold(at::ScalarType compute) const {
  Folded folded;
  for (const Discriminator& one : discriminators) {
    auto& weights = folded.weights.emplace_back();
    auto& biases = folded.biases.emplace_back();
    for (const Layer& layer : one.layers) {
      const at::Tensor weight = at::_weight_norm(layer.direction, layer.scale, 0).to(compute);
      weights.push_back(one.period > 1 ? weight.squeeze(3) : weight);
      // In float32 no copy: without gradients here there must be none behind it either.
      const at::Tensor bias = at::GradMode::is_enabled() ? layer.bias : layer.bias.detach();
      biases.push_back(bias.to(compute));
    }
  }
  return folded;
}

Judgement Discriminators::judge(const at::Tensor& waves, const Folded& folded,
                                bool by_products) const {
  Judgement judgement;
  at::Tensor pooled = waves.unsqueeze(1);
  int64_t halved = 0;
  for (size_t d = 0; d < discriminators.size(); ++d) {
    const Discriminator& one = discriminators[d];
    for (; halved < one.halved; ++halved) pooled = at::avg_pool1d(pooled, 4, 2, 2);
    at::Tensor x = one.period > 1 ? fold_by(waves, one.period) : pooled;
    if (by_products) x = x.transpose(1, 2);
    int64_t samples = one.period << one.halved;
    auto& maps = judgement.maps.emplace_back();
    for (size_t i = 0; i < one.layers.size(); ++i) {
      const at::Tensor& weight = folded.weights[d][i];
      const Layer& layer = one.layers[i];
      const bool last = i + 1 == one.layers.size();
      const at::Tensor in = x.to(weight.scalar_type());
      if (by_products) {
        x = flat_conv(in, weight, folded.biases[d][i],
                      {.stride = layer.stride, .groups = layer.groups, .slope = last ? 1 : slope});
      } else {
        x = at::conv1d(in, weight, folded.biases[d][i], layer.stride, (weight.size(2) - 1) / 2, 1,
                       layer.groups);
        if (!last) x = at::leaky_relu(x, slope);
      }
      samples *= layer.stride;
      maps.push_back({by_products ? x.transpose(1, 2) : x, samples});
    }
  }
  return judgement;
}

}  // namespace tandem
