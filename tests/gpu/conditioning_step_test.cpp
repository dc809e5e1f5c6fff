// The conditioning's pass by hand in bfloat16 against autograd in float32 with the same weights,
// and its leaves. Needs a GPU.
#include "nn/gpt_step/conditioning_step.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "gpu/in_child.h"
#include "models/xtts/conditioning.h"
#include "nn/gpt_step/gpt_attention.h"
#include "nn/gpt_step/step_ops.h"
#include "nn/parameters.h"

namespace tandem {
namespace {

LogicalDevice& conditioning_gpu() {
  configure_devices({});
  return *DeviceRegistry::get().gpus().front();
}

double error_of(const at::Tensor& ours, const at::Tensor& reference) {
  const at::Tensor a = ours.cpu().to(at::kDouble), b = reference.cpu().to(at::kDouble);
  return (a - b).norm().item<double>() / std::max(b.norm().item<double>(), 1e-20);
}

at::Tensor drawn_half(const char* name, at::IntArrayRef shape, double deviation = 1) {
  return make_parameter(9, name, shape, deviation).detach().to(at::kCUDA, at::kBFloat16);
}

struct GpuConditioning {
  Conditioning plain;  // float32 on the CPU, values that bfloat16 can tell
  std::vector<std::pair<std::string, TrainedWeight>> weights;
  ConditioningStepWeights step;

  explicit GpuConditioning(int64_t width, int64_t heads) {
    XttsConfig config;
    config.gpt.width = width;
    config.gpt.heads = heads;
    plain = Conditioning::make(config, 3);
    plain.visit("", [&](const std::string& name, at::Tensor& tensor) {
      tensor = tensor.detach().cpu().to(at::kBFloat16).to(at::kFloat).requires_grad_(true);
      weights.emplace_back(
          name, TrainedWeight{
                    tensor.detach().to(at::kCUDA, at::kBFloat16),
                    at::full(tensor.sizes(), NAN, at::TensorOptions(at::kCUDA).dtype(at::kFloat))});
    });
    std::vector<TrainedWeight> in_order;
    for (const auto& [name, weight] : weights) in_order.push_back(weight);
    step = conditioning_step_weights(in_order, plain.blocks.size(), plain.layers.size());
    step.heads = heads;
    step.groups = norm_groups(width);
  }
  at::Tensor all_gradients() const {
    std::vector<at::Tensor> flat;
    for (const auto& [name, weight] : weights) flat.push_back(weight.gradient.flatten());
    return at::cat(flat);
  }
};

}  // namespace

TEST(GpuConditioningStep, GivesLatentsAndGradientsOfAutograd) {
  IN_CHILD({
    DeviceScope scope(conditioning_gpu());
    // Heads of 64 (our kernels on Hopper) and of 32 (LibTorch's).
    for (const int64_t heads : {8, 16}) {
      for (const bool padded : {true, false}) {
        GpuConditioning tried(512, heads);
        const at::Tensor mels = make_parameter(4, "mels", {3, 80, 333}, 1.0).detach().cpu();
        const at::Tensor lengths = padded ? at::tensor({200, 333, 1}, at::kLong) : at::Tensor();
        const at::Tensor gradient = make_parameter(4, "flow", {3, 32, 512}, 1.0).detach().cpu();
        const at::Tensor expected = tried.plain(mels, lengths);
        expected.backward(gradient);
        ConditioningStep step(tried.step, /*tune=*/true);
        const at::Tensor on_gpu = padded ? lengths.to(at::kCUDA) : at::Tensor();
        const auto run = [&](bool overwrites) {
          const at::Tensor found = step.forward(mels.to(at::kCUDA), on_gpu);
          step.backward(gradient.to(at::kCUDA), overwrites);
          return found;
        };
        EXPECT_LT(error_of(run(true), expected.detach()), 3e-2) << heads << padded;
        const at::Tensor once = tried.all_gradients().clone();
        size_t next = 0;
        tried.plain.visit("", [&](const std::string& name, at::Tensor& tensor) {
          EXPECT_LT(error_of(tried.weights[next++].second.gradient, tensor.grad()), 8e-2)
              << name << ", " << heads << " heads" << (padded ? ", padded" : "");
        });
        run(true);
        EXPECT_TRUE(once.equal(tried.all_gradients())) << "the same bits again";
        run(false);
        EXPECT_LT(error_of(tried.all_gradients(), once * 2), 1e-6);
      }
    }
  });
}

TEST(GpuConditioningStep, IsCapturedAndReplayedForOtherBatches) {
  IN_CHILD({
    DeviceScope scope(conditioning_gpu());
    GpuConditioning tried(512, 8);
    ConditioningStep step(tried.step, /*tune=*/false);
    const auto options = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
    const at::Tensor other = make_parameter(4, "mels", {2, 80, 150}, 1.0).detach().to(at::kCUDA);
    const at::Tensor lengths = at::tensor({150, 77}, at::kLong).to(at::kCUDA);
    const at::Tensor gradient = make_parameter(4, "flow", {2, 32, 512}, 1.0).detach().to(at::kCUDA);
    const at::Tensor expected = step.forward(other, lengths).clone();
    step.backward(gradient, true);
    const at::Tensor gradients = tried.all_gradients().clone();
    const at::Tensor mels = at::ones({2, 80, 150}, options);
    const at::Tensor fixed = at::full({2}, 150, lengths.options());
    at::cuda::CUDAGraph graph;
    graph.capture_begin();
    const at::Tensor found = step.forward(mels, fixed);
    step.backward(gradient, true);
    graph.capture_end();
    mels.copy_(other);
    fixed.copy_(lengths);
    graph.replay();
    EXPECT_TRUE(expected.equal(found));
    EXPECT_TRUE(gradients.equal(tried.all_gradients()));
  });
}

TEST(GpuConditioningStep, NormsAreThoseOfTheCpu) {
  IN_CHILD({
    DeviceScope scope(conditioning_gpu());
    StepOps gpu(at::Device(at::kCUDA, 0), false), cpu(at::kCPU, false);
    // The second has more frames than shared memory keeps.
    for (const auto& [width, groups, frames] :
         {std::tuple<int64_t, int64_t, int64_t>{1024, 32, 517}, {512, 8, 2100}, {64, 8, 3}}) {
      const at::Tensor x = drawn_half("x", {3 * frames, width}) + 2,
                       weight = drawn_half("w", {width}), bias = drawn_half("b", {width}),
                       flow = drawn_half("g", {3 * frames, width});
      const at::Tensor lengths = at::tensor({frames, frames / 2, int64_t{1}}, at::kLong);
      const auto wide = [](const at::Tensor& t) { return t.cpu().to(at::kFloat); };
      const auto number = at::TensorOptions().dtype(at::kFloat);
      at::Tensor out[2], statistics[2], x_gradient[2], partial[2];
      for (const int on_gpu : {0, 1}) {
        const at::Device device = on_gpu ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
        const auto of = [&](const at::Tensor& t) { return on_gpu ? t : wide(t); };
        const StepFrames rows{3, frames, lengths.to(device)};
        out[on_gpu] = at::full_like(of(x), NAN);
        x_gradient[on_gpu] = at::full_like(of(x), NAN);
        statistics[on_gpu] = at::full({3, groups, 2}, NAN, number.device(device));
        partial[on_gpu] = at::full({3, 3, width}, NAN, number.device(device));
        StepOps& ops = on_gpu ? gpu : cpu;
        ops.norm(of(x), rows, of(weight), of(bias), out[on_gpu], statistics[on_gpu]);
        ops.norm_backward(of(flow), of(x), rows, of(weight), statistics[on_gpu], x_gradient[on_gpu],
                          partial[on_gpu]);
      }
      EXPECT_LT(error_of(out[1], out[0]), 4e-3) << width;
      EXPECT_LT(error_of(statistics[1], statistics[0]), 1e-4) << width;
      EXPECT_LT(error_of(x_gradient[1], x_gradient[0]), 4e-3) << width;
      EXPECT_LT(error_of(partial[1].select(1, 0), partial[0].select(1, 0)), 1e-4) << width;
      EXPECT_LT(error_of(partial[1].select(1, 1), partial[0].select(1, 1)), 1e-4) << width;
      // Sums of what almost adds up to nothing.
      EXPECT_LT(
          (partial[1].select(1, 2).cpu() - partial[0].select(1, 2)).abs().max().item<double>(),
          2e-2)
          << width;
    }
  });
}

TEST(GptAttention, SumsAreFiniteWhereAllScoresAreFarBelowZero) {
  IN_CHILD({
    DeviceScope scope(conditioning_gpu());
    at::manual_seed(5);
    const int64_t heads = 2, head = 64, places = 400;
    const auto half = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
    const PackedSequences sequences{at::tensor({0, 65, 195, 400}, at::kInt).to(at::kCUDA), 205};
    // Scores about -36 * 64 / 8: none of a row's is near the 0 of rows behind a sequence's end.
    const at::Tensor qkv = at::randn({places, heads, 3, head}, half);
    qkv.select(2, 0).add_(6);
    qkv.select(2, 1).sub_(6);
    const at::Tensor flow = at::randn({places, heads, head}, half);
    const auto stream = c10::cuda::getCurrentCUDAStream();
    for (const bool causal : {true, false}) {
      GptAttention attention(heads, head, places, 3, causal);
      if (!attention.own_kernels()) continue;
      const at::Tensor out = at::full({places, heads, head}, NAN, half);
      const at::Tensor sums = at::full({heads, places}, NAN, half.dtype(at::kFloat));
      const at::Tensor gradient = at::full_like(qkv, NAN);
      attention.begin(sequences, places, stream);
      attention.forward(qkv.transpose(1, 2), sequences, out, sums, stream);
      EXPECT_LT(sums.max().item<double>(), -128) << "not the case that is tried";
      attention.backward(flow, qkv.transpose(1, 2), out, sums, sequences, gradient.transpose(1, 2),
                         at::empty_like(sums), stream);
      EXPECT_TRUE(gradient.isfinite().all().item<bool>());
      const auto parts = attention.bias_parts(sequences, places);
      const at::Tensor by_query = at::from_blob(const_cast<float*>(parts.query),
                                                {parts.query_parts, heads * head}, sums.options())
                                      .sum(0);
      const at::Tensor expected = gradient.select(2, 0).to(at::kFloat).sum(0).flatten();
      EXPECT_LT(error_of(by_query, expected), 2e-2) << (causal ? "causal" : "whole");
    }
  });
}

TEST(GptAttention, SeesWholeSequencesWhereItIsNotCausal) {
  IN_CHILD({
    DeviceScope scope(conditioning_gpu());
    at::manual_seed(3);
    for (const int64_t head : {64, 40}) {
      const int64_t heads = 3;
      const std::vector<int64_t> lengths = {1, 0, 63, 64, 65, 2, 127, 517, 128, 129, 0, 700};
      std::vector<int64_t> starts = {0};
      for (const int64_t length : lengths) starts.push_back(starts.back() + length);
      const int64_t places = starts.back();
      const auto half = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
      // Per head q, k, v in memory.
      const at::Tensor qkv = at::randn({places, heads, 3, head}, half).transpose(1, 2);
      const at::Tensor flow = at::randn({places, heads, head}, half);
      const PackedSequences sequences{at::tensor(starts, at::kInt).to(at::kCUDA), 700};
      const at::Tensor out = at::full({places, heads, head}, NAN, half);
      const at::Tensor sums = at::full({heads, places}, NAN, half.dtype(at::kFloat));
      const at::Tensor dots = at::full_like(sums, NAN);
      const at::Tensor gradient = at::full({places, heads, 3, head}, NAN, half).transpose(1, 2);
      GptAttention attention(heads, head, places, static_cast<int64_t>(lengths.size()), false);
      const auto stream = c10::cuda::getCurrentCUDAStream();
      attention.begin(sequences, places, stream);
      attention.forward(qkv, sequences, out, sums, stream);
      attention.backward(flow, qkv, out, sums, sequences, gradient, dots, stream);
      for (size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] == 0) continue;
        const auto part = [&](const at::Tensor& x) {
          return x.narrow(0, starts[i], lengths[i]).to(at::kFloat);
        };
        const at::Tensor leaf = part(qkv).detach().requires_grad_(true);
        const auto all = leaf.permute({1, 2, 0, 3}).unbind(0);
        const at::Tensor scores =
            at::matmul(all[0], all[1].transpose(1, 2)) / std::sqrt(static_cast<double>(head));
        const at::Tensor expected = at::matmul(at::softmax(scores, -1), all[2]).transpose(0, 1);
        EXPECT_LT(error_of(part(out), expected.detach()), 5e-3) << lengths[i];
        const auto grads = torch::autograd::grad({expected}, {leaf}, {part(flow)});
        for (int64_t k = lengths[i] == 1 ? 2 : 0; k < 3; ++k)
          EXPECT_LT(error_of(part(gradient).select(1, k), grads[0].select(1, k)),
                    lengths[i] == 2 ? 3e-2 : 1e-2)
              << lengths[i] << " of " << k << ", heads of " << head;
      }
      if (!attention.own_kernels()) continue;
      const auto parts = attention.bias_parts(sequences, places);
      const auto sum = [&](const float* from, int count) {
        return at::from_blob(const_cast<float*>(from), {count, heads * head}, sums.options())
            .sum(0);
      };
      const auto of = [&](int64_t k) {
        return gradient.select(1, k).to(at::kFloat).sum(0).flatten();
      };
      EXPECT_LT(error_of(sum(parts.query, parts.query_parts), of(0)), 2e-2);
      EXPECT_LT(error_of(sum(parts.value, parts.value_parts), of(2)), 1e-2);
    }
  });
}

}  // namespace tandem
