// The optimizer's kernel against the CPU: whole and split weights, skipped steps, averages.
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

Stepped take_steps(const at::Device& device, bool split) {
  std::vector<at::Tensor> tensors;
  std::vector<TrainedTensor> named;
  for (const int64_t count : {1000, 77, 4096})
    tensors.push_back(make_parameter(3, "t" + std::to_string(count), {count}, 1.0).detach());
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = tensors[i].to(device);
    named.push_back({std::to_string(i), &tensors[i], i != 1, split});
  }
  ParameterStore store(named, true, device);
  Optimizer optimizer(store, {.rule = {.average_decay = 0.9}, .largest_norm = 1});
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
    for (const bool split : {false, true}) {
      const Stepped cpu = take_steps(at::Device(at::kCPU), split),
                    gpu = take_steps(at::Device(at::kCUDA, 0), split);
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

}  // namespace
}  // namespace tandem
