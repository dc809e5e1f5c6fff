// Layers computed again in the backward pass, as they are and captured, in float32 and bfloat16.
#include "nn/recomputed.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include "device/capture_work.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "gpu/in_child.h"
#include "models/xtts/xtts_gpt.h"
#include "models/xtts/xtts_config.h"
#include "nn/model_parts.h"
#include "train/stages/low_precision.h"

namespace tandem {

TEST(GpuRecomputed, GivesTheSameGradientsAlsoCaptured) {
  IN_CHILD({
    configure_devices({});
    LogicalDevice& device = DeviceRegistry::get().find("/GPU:0");
    const DeviceScope scope(device);
    const c10::cuda::CUDAStreamGuard aside(c10::cuda::getStreamFromPool());
    const at::TensorOptions numbers = at::TensorOptions(at::kCUDA).dtype(at::kLong);
    XttsGpt gpt = XttsGpt::make(xtts_preset("tiny").gpt, 5);
    move_to(gpt, "gpt.", at::TensorOptions(at::kCUDA));
    std::vector<at::Tensor> weights;
    gpt.visit("gpt.", [&](const std::string&, at::Tensor& tensor) {
      tensor = tensor.detach().requires_grad_(true);
      tensor.mutable_grad() = at::zeros_like(tensor);
      weights.push_back(tensor);
    });
    const at::Tensor step = at::full({}, 7, numbers);
    const at::Tensor rows = at::tensor({11, 12}, at::kLong).to(at::kCUDA);
    const XttsGpt::LearnBatch batch{
        .text = at::randint(3, 60, {2, 9}, numbers),
        .text_lengths = at::tensor({9, 5}, at::kLong).to(at::kCUDA),
        .codes = at::randint(0, 60, {2, 11}, numbers),
        .code_lengths = at::tensor({11, 8}, at::kLong).to(at::kCUDA),
        .conditioning = at::randn({2, 32, gpt.size.width}, at::TensorOptions(at::kCUDA))};
    for (const std::string precision : {"fp32", "bf16"}) {
      const auto pass = [&](bool recompute) {
        XttsGpt::LearnBatch learned = batch;
        learned.recompute = recompute;
        XttsGpt::Learned found;
        {
          const LowPrecision low(precision, device);
          found = gpt.learn(learned, {.share = 0.1, .seed = 3, .step = step, .rows = rows});
        }
        (found.audio_loss + found.text_loss).backward();
      };
      const auto gradients = [&](const std::function<void()>& work) {
        for (at::Tensor& weight : weights) weight.mutable_grad().zero_();
        work();
        std::vector<at::Tensor> found;
        for (const at::Tensor& weight : weights) found.push_back(weight.grad().clone());
        return found;
      };
      const auto kept = gradients([&] { pass(false); });
      const auto again = gradients([&] { pass(true); });
      const auto graph = capture_work(at::cuda::graph_pool_handle(), [&] { pass(true); });
      const auto captured = gradients([&] { graph->replay(); });
      for (size_t i = 0; i < kept.size(); ++i) {
        // Embeddings' gradients have no order of summation on a GPU.
        const double limit = 1e-4 * kept[i].abs().max().item<double>();
        EXPECT_GT(limit, 0) << i;
        EXPECT_LE((kept[i] - again[i]).abs().max().item<double>(), limit) << precision << i;
        EXPECT_LE((kept[i] - captured[i]).abs().max().item<double>(), limit) << precision << i;
      }
    }
  });
}

}  // namespace tandem
