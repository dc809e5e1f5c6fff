// The fused pass's gradients against central differences of its own losses. Needs a GPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "gpu/in_child.h"
#include "gpu/plain_gpt.h"
#include "nn/gpt_step/gpt_step.h"

namespace tandem {
namespace {

LogicalDevice& slope_gpu() {
  configure_devices({});
  return *DeviceRegistry::get().gpus().front();
}

struct Sloped {
  GptStepOptions options;
  GptStepWeights weights = random_gpt_weights({}, 1);
  TriedBatch tried;
  GptStep step;
  double whole = 0;  // the loss where all stands still

  explicit Sloped(const GptStepOptions& given)
      : options(given),
        tried(random_gpt_batch({}, given, {7, 12, 0, 41}, {20, 33, 0, 129}, 9, 2)),
        step(weights, given) {
    tried.batch.overwrites = true;
    // Or every code is told from its place, and the third loss has nothing to learn.
    weights.audio_embedding.weight.mul_(0.3);
  }

  // What the gradients are those of.
  double loss() {
    const at::Tensor scale = at::ones({}, at::TensorOptions(at::kCUDA));
    const GptStepResult found = step.run(tried.batch, step_number(5), scale, 77);
    const double text = found.losses[0].item<double>(), audio = found.losses[1].item<double>();
    const double recall = found.recall.defined() ? found.recall.item<double>() : 0;
    return options.text_loss_weight * text + audio + options.recall_weight * recall;
  }

  // x is moved to both sides along its gradient, along which the loss changes most: until it
  // changes by an eightieth each way, by three tenths of x's own length at most. There it bends by
  // 2 % of that, and what the pass rounds inside makes 2e-4 of the whole loss (measured of the
  // plain model in bfloat16). How far x came when it was rounded itself is taken as it is.
  void expect_slope(const std::string& name, const at::Tensor& x, const at::Tensor& gradient) {
    const at::Tensor kept = x.clone(), from = kept.to(at::kFloat);
    const double length = gradient.norm().item<double>();
    ASSERT_GT(length, 0) << name;
    const double most = 0.3 * from.norm().item<double>();
    const at::Tensor way = gradient * (std::min(whole / 80 / length, most) / length);
    x.copy_(from + way);
    const at::Tensor there = x.to(at::kDouble);
    const double above = loss();
    x.copy_(from - way);
    const double below = loss();
    const double expected = (gradient * (there - x.to(at::kDouble))).sum().item<double>();
    x.copy_(kept);
    const double noise = 3e-4 * whole;
    EXPECT_GT(expected, 5 * noise) << name << " has no part in it";
    EXPECT_NEAR(above - below, expected, 0.06 * expected + noise) << name;
  }

  void expect_slopes() {
    whole = loss();
    const at::Tensor of_latents = step.result().latents_gradient.clone();
    const NamedWeights named = weights_by_name(weights);
    std::vector<at::Tensor> gradients;
    for (const auto& [name, weight] : named) gradients.push_back(weight->gradient.clone());
    expect_slope("latents", tried.batch.latents, of_latents);
    for (size_t i = 0; i < named.size(); ++i)
      expect_slope(named[i].first, named[i].second->weight, gradients[i]);
  }
};

}  // namespace

TEST(GptStepSlope, OfEveryTensorIsThatOfItsGradient) {
  IN_CHILD({
    DeviceScope scope(slope_gpu());
    GptStepOptions options = small_options();
    options.text_loss_weight = 0.5;
    Sloped(options).expect_slopes();
    options.dropout = 0.2;
    options.recall_weight = 0.7;
    options.reads_stop = true;
    options.recompute = true;
    Sloped(options).expect_slopes();
  });
}

}  // namespace tandem
