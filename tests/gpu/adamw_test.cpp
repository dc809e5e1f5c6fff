// The optimizer's kernels against the CPU: whole and split weights, gradients in half, skipped
// steps, averages, verdicts.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gpu/in_child.h"

#include "nn/parameters.h"
#include "train/optimizer.h"

namespace tandem {
namespace {

struct Stepped {
  NamedTensors weights, moments, average;
  std::vector<double> good;
};

Stepped take_steps(const at::Device& device, bool split, bool half, bool averaged) {
  std::vector<at::Tensor> tensors;
  std::vector<TrainedTensor> named;
  for (const int64_t count : {1000, 77, 4096})
    tensors.push_back(make_parameter(3, "t" + std::to_string(count), {count}, 1.0).detach());
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = tensors[i].to(device);
    named.push_back({std::to_string(i), &tensors[i], i != 1, split, half && i == 2});
  }
  ParameterStore store(named, averaged, device, half);
  Optimizer optimizer(store, {.rule = {.average_decay = averaged ? 0.9 : 0.0}, .largest_norm = 1});
  const at::TensorOptions number = at::TensorOptions(device).dtype(at::kFloat);
  const OptimizerInputs inputs{at::full({}, 0.01, number), at::full({}, 2.0, number)};
  Stepped out;
  for (int step = 0; step < 6; ++step) {
    for (const TrainedView& view : store.views()) {
      at::Tensor gradient = view.gradient;
      gradient.copy_(
          make_parameter(static_cast<uint64_t>(step), view.name, gradient.sizes(), 0.1).detach());
      if (step == 3 && view.name == "1") gradient.narrow(0, 5, 1).fill_(NAN);
    }
    out.good.push_back(optimizer.step(inputs)[1].item<double>());
  }
  ParameterStore::Snapshot snapshot;
  store.copy_to(snapshot);
  if (device.is_cuda()) at::zeros({1}, number).item<float>();
  const auto kept = [](NamedTensors list) {
    for (auto& [name, tensor] : list) tensor = tensor.clone();
    return list;
  };
  out.weights = kept(store.weights(snapshot));
  out.moments = kept(store.moments(snapshot));
  out.average = kept(store.average(snapshot));
  return out;
}

TEST(GpuAdamW, GivesWhatTheCpuGives) {
  IN_CHILD({
    for (const auto& [split, half, averaged] :
         {std::tuple{false, false, true}, std::tuple{true, false, true},
          std::tuple{true, true, true}, std::tuple{false, false, false},
          std::tuple{true, true, false}}) {
      const Stepped cpu = take_steps(at::Device(at::kCPU), split, half, averaged),
                    gpu = take_steps(at::Device(at::kCUDA, 0), split, half, averaged);
      EXPECT_EQ(cpu.good, (std::vector<double>{1, 1, 1, 0, 1, 1}));
      EXPECT_EQ(gpu.good, cpu.good);
      const auto near = [](const NamedTensors& a, const NamedTensors& b) {
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) {
          EXPECT_LT((a[i].second - b[i].second).abs().max().item<double>(), 2e-6) << a[i].first;
        }
      };
      near(cpu.weights, gpu.weights);
      near(cpu.moments, gpu.moments);
      near(cpu.average, gpu.average);
    }
  });
}

// Verdicts over a training that begins without gradients, spikes, stays high, and is not finite. It
// ends where it is not finite for too long, or, where fewer bad steps are allowed, by its spikes.
void expect_the_cpus_verdicts(int64_t most_bad, int64_t bad_at_the_end) {
  const VerdictRule rule{.average_decay = 0.99,
                         .largest_norm = 1,
                         .spike_factor = 3,
                         .least = 5,
                         .most_bad = most_bad};
  VerdictMemory cpu(at::kCPU, 12), gpu(at::Device(at::kCUDA, 0), 12);
  for (int step = 0; step < 120; ++step) {
    double size = 1 + 0.5 * std::sin(step * 1.7);
    if (step % 9 == 8) size *= 10;
    if (step % 31 == 3) size = NAN;
    if (step % 17 == 5 || step == 0) size = 0;
    if (step > 80) size *= 100;
    if (step > 105 && step < 114) size = NAN;  // behind these no step is taken
    at::Tensor values[2];
    at::Tensor outcomes[2];
    for (const bool on_gpu : {false, true}) {
      const at::TensorOptions here =
          at::TensorOptions(on_gpu ? at::kCUDA : at::kCPU).dtype(at::kFloat);
      const std::vector<at::Tensor> gradients = {
          at::full({64 * 3000}, size, here), at::zeros({0}, here),
          at::full({64 * 70}, size, here).to(at::kBFloat16), at::full({64}, -size, here)};
      at::Tensor& v = values[on_gpu ? 1 : 0];
      v = at::zeros({adamw_values}, here);
      outcomes[on_gpu ? 1 : 0] = decide_step(gradients, at::full({}, 0.01, here),
                                             at::full({}, 4.0, here), on_gpu ? gpu : cpu, rule, v)
                                     .cpu();
      v = v.cpu();
    }
    EXPECT_EQ(outcomes[0][1].item<float>(), outcomes[1][1].item<float>()) << step;
    // The CPU adds squares up in float32.
    EXPECT_TRUE(at::allclose(outcomes[0], outcomes[1], 2e-4, 0, true)) << step;
    EXPECT_TRUE(at::allclose(values[0], values[1], 2e-4, 0, true))
        << step << values[0] << values[1];
  }
  EXPECT_EQ(cpu.steps.item<double>(), gpu.steps.item<double>());
  EXPECT_EQ(cpu.count.item<int64_t>(), gpu.count.item<int64_t>());
  EXPECT_EQ(cpu.spikes.item<int64_t>(), gpu.spikes.item<int64_t>());
  EXPECT_EQ(cpu.worn.item<int64_t>(), gpu.worn.item<int64_t>());
  EXPECT_EQ(cpu.bad.item<int64_t>(), bad_at_the_end);
  EXPECT_EQ(gpu.bad.item<int64_t>(), bad_at_the_end);
  EXPECT_TRUE(at::allclose(cpu.norms, gpu.norms.cpu(), 2e-4));
}

TEST(GpuStepVerdict, DecidesWhatTheCpuDecides) {
  IN_CHILD({
    expect_the_cpus_verdicts(7, 14);
    expect_the_cpus_verdicts(5, 35);
  });
}

}  // namespace
}  // namespace tandem
