// Matrices of 8-bit floats, and the training pass whose products read them. Needs a GPU; the pass a
// Hopper one.
#include "nn/gpt_step/fp8.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <gtest/gtest.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "gpu/in_child.h"
#include "gpu/plain_gpt.h"

namespace tandem {
namespace {

LogicalDevice& fp8_gpu() {
  configure_devices({});
  return *DeviceRegistry::get().gpus().front();
}

// Rows and columns of very different size; one row and one column are all zeros.
at::Tensor uneven(int64_t rows, int64_t columns) {
  const auto options = at::TensorOptions(at::kCUDA);
  at::manual_seed(3);
  const at::Tensor down = at::exp2(at::arange(rows, options).remainder(23) - 15).unsqueeze(1),
                   along = at::exp2(at::arange(columns, options).remainder(7) - 3).unsqueeze(0);
  at::Tensor made = at::randn({rows, columns}, options) * down * along;
  made[rows / 2].zero_();
  made.select(1, 5).zero_();
  return made.to(at::kBFloat16);
}

struct MadeFp8 {
  at::Tensor data, scales;
  MadeFp8(int64_t rows, int64_t columns)
      : data(at::full({rows, columns}, 0xff, at::TensorOptions(at::kCUDA).dtype(at::kByte))),
        scales(at::full({rows}, -1, at::TensorOptions(at::kCUDA).dtype(at::kFloat))) {}
  Fp8Rows rows() { return {data.data_ptr<uint8_t>(), scales.data_ptr<float>()}; }
  at::Tensor values() const {
    return data.view(at::kFloat8_e4m3fn).to(at::kFloat) * scales.unsqueeze(1);
  }
};

const bf16* half_of(const at::Tensor& tensor) {
  return static_cast<const bf16*>(tensor.const_data_ptr());
}

// What LibTorch makes of rows scaled to the format's largest number.
void expect_rounded(const MadeFp8& made, const at::Tensor& rows) {
  const at::Tensor x = rows.to(at::kFloat);
  const at::Tensor largest = x.abs().amax(1, /*keepdim=*/true).clamp_min(1e-30);
  const at::Tensor expected =
      (x * (448 / largest)).to(at::kFloat8_e4m3fn).to(at::kFloat) * (largest / 448);
  EXPECT_TRUE(made.values().allclose(expected, 1e-6, 0)) << (made.values() - expected).abs().max();
  EXPECT_TRUE(made.values().allclose(x, 0.0625, 0.002 * largest.max().item<double>()));
}

double error_of(const at::Tensor& ours, const at::Tensor& reference) {
  const at::Tensor a = ours.to(at::kDouble).flatten(), b = reference.to(at::kDouble).flatten();
  return (a - b).norm().item<double>() / std::max(b.norm().item<double>(), 1e-20);
}

}  // namespace

TEST(GpuFp8, RowsAndColumnsAreRoundedAsLibTorchDoes) {
  IN_CHILD({
    DeviceScope scope(fp8_gpu());
    const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
    const at::Tensor tall = uneven(512, 128), wide = uneven(128, 1024), long_rows = uneven(9, 4096);
    MadeFp8 tall_rows(512, 128), wide_rows(128, 1024), longest(9, 4096);
    const Fp8Jobs rows{{{half_of(tall), tall_rows.rows(), 512, 128},
                        {half_of(wide), wide_rows.rows(), 128, 1024},
                        {half_of(long_rows), longest.rows(), 9, 4096}},
                       3};
    launch_fp8_rows(rows, stream);
    expect_rounded(tall_rows, tall);
    expect_rounded(wide_rows, wide);
    expect_rounded(longest, long_rows);
    MadeFp8 tall_turned(128, 512), wide_turned(1024, 128), wide_straight(128, 1024),
        square_straight(256, 256);
    const at::Tensor square = uneven(256, 256);
    const Fp8Turns weights{{{half_of(tall), tall_turned.rows(), {}, 512, 128},
                            {half_of(wide), wide_turned.rows(), wide_straight.rows(), 128, 1024},
                            {half_of(square), {}, square_straight.rows(), 256, 256}},
                           3};
    const at::Tensor largest = at::zeros({640 + 1152 + 512}, at::TensorOptions(at::kCUDA));
    for (int again = 0; again < 2; ++again) {
      launch_fp8_weights(weights, largest.data_ptr<float>(), stream);
      expect_rounded(tall_turned, tall.t());
      expect_rounded(wide_turned, wide.t());
      expect_rounded(wide_straight, wide);
      expect_rounded(square_straight, square);
    }
  });
}

TEST(GpuFp8, GeluGivesBothFormsOfItsGradient) {
  IN_CHILD({
    DeviceScope scope(fp8_gpu());
    const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
    for (const int64_t columns : {512, 4096}) {
      const int64_t places = 700;
      const auto halves = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
      at::manual_seed(5);
      const at::Tensor x = at::randn({places, columns}, halves) * 2;
      at::Tensor gradient = at::randn({places, columns}, halves), activated = at::zeros_like(x);
      const at::Tensor leaf = x.to(at::kFloat).requires_grad_(true);
      const at::Tensor value = at::gelu(leaf, "tanh");
      const at::Tensor slope = torch::autograd::grad({value}, {leaf}, {gradient.to(at::kFloat)})[0];

      MadeFp8 forward(places, columns), backward(places, columns);
      const at::Tensor partial =
          at::zeros({gelu_fp8_parts, columns}, x.options().dtype(at::kFloat));
      launch_gelu_fp8(half_of(x), forward.rows(), places, columns, stream);
      EXPECT_LT(error_of(forward.values(), value.detach()), 0.04);
      launch_gelu_backward_fp8(half_of(x), static_cast<bf16*>(gradient.data_ptr()),
                               static_cast<bf16*>(activated.data_ptr()), backward.rows(),
                               partial.data_ptr<float>(), places, columns, stream);
      EXPECT_LT(error_of(activated, value.detach()), 5e-3);
      EXPECT_LT(error_of(gradient, slope), 5e-3);
      EXPECT_LT(error_of(backward.values(), slope), 0.04);
      EXPECT_LT(error_of(partial.sum(0), slope.sum(0)), 5e-3);
    }
  });
}

TEST(GpuFp8, GradientsAreNearThoseOfThePlainModel) {
  IN_CHILD({
    DeviceScope scope(fp8_gpu());
    if (!gpt_step_takes_fp8(128)) {
      std::printf("this GPU is no Hopper\n");
      return;
    }
    for (const bool recompute : {false, true}) {
      PlainGptSize size;
      GptStepOptions options = small_options();
      options.most_places = 1408;
      options.fp8 = true;
      options.recompute = recompute;
      options.dropout = recompute ? 0 : 0.1;
      options.tune = !recompute;
      GptStepWeights weights = random_gpt_weights(size, 1);
      TriedBatch tried =
          random_gpt_batch(size, options, {7, 0, 12, 3, 41}, {20, 0, 33, 310, 129}, 37, 2);
      tried.batch.places = (tried.batch.places + 15) / 16 * 16;
      GptStep step(weights, options);
      const at::Tensor one = at::ones({}, at::TensorOptions(at::kCUDA));
      const GptStepResult result = step.run(tried.batch, step_number(5), one, 77);
      std::vector<at::Tensor> masks;
      if (options.dropout > 0)
        for (int64_t i = 0; i <= 2 * size.layers; ++i)
          masks.push_back(step.dropout_mask(i, options.most_places, step_number(5), 77));
      const PlainPass plain = plain_gpt_pass(weights, options, tried, masks, 1);
      EXPECT_LT(error_of(result.losses, plain.losses.to(at::kCUDA)), 2e-2);
      double worst = error_of(result.latents_gradient, plain.latents_gradient.to(at::kCUDA));
      for (const auto& [name, weight] : weights_by_name(weights))
        worst = std::max(worst, error_of(weight->gradient, plain.gradients.at(name).to(at::kCUDA)));
      std::printf("recompute %d: losses %.2e, worst gradient %.2e\n", recompute,
                  error_of(result.losses, plain.losses.to(at::kCUDA)), worst);
      EXPECT_LT(worst, 0.2);
    }
  });
}

TEST(GpuFp8, GivesTheSameBitsAgainAndCaptured) {
  IN_CHILD({
    DeviceScope scope(fp8_gpu());
    if (!gpt_step_takes_fp8(128)) {
      std::printf("this GPU is no Hopper\n");
      return;
    }
    GptStepOptions options = small_options();
    options.most_places = 1408;
    options.fp8 = true;
    options.dropout = 0.1;
    GptStepWeights weights = random_gpt_weights({}, 1);
    TriedBatch tried = random_gpt_batch({}, options, {7, 12, 41}, {20, 310, 129}, 37, 2);
    tried.batch.places = (tried.batch.places + 15) / 16 * 16;
    tried.batch.overwrites = true;
    GptStep step(weights, options);
    const at::Tensor one = at::ones({}, at::TensorOptions(at::kCUDA)), number = step_number(1);
    const auto run = [&] {
      const GptStepResult result = step.run(tried.batch, number, one, 7);
      std::vector<at::Tensor> parts = {result.losses, result.latents_gradient.flatten()};
      for (const auto& [name, weight] : weights_by_name(weights))
        parts.push_back(weight->gradient.flatten());
      return at::cat(parts);
    };
    const at::Tensor first = run(), second = run();
    EXPECT_TRUE(first.equal(second));
    EXPECT_TRUE(first.isfinite().all().item<bool>());
    at::cuda::CUDAGraph graph;
    graph.capture_begin();
    step.run(tried.batch, number, one, 7);
    graph.capture_end();
    for (const auto& [name, weight] : weights_by_name(weights)) weight->gradient.fill_(-3);
    graph.replay();
    std::vector<at::Tensor> parts = {step.result().losses,
                                     step.result().latents_gradient.flatten()};
    for (const auto& [name, weight] : weights_by_name(weights))
      parts.push_back(weight->gradient.flatten());
    EXPECT_TRUE(first.equal(at::cat(parts)));
  });
}

}  // namespace tandem
