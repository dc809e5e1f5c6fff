#include "observe/profile_operations.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "device/simulated.h"
#include "observe/profile_kernels.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

std::vector<TracedOperation> named(const OperationRecord& record, const std::string& name) {
  std::vector<TracedOperation> found;
  for (const TracedOperation& operation : record.operations)
    if (record.names[operation.name] == name) found.push_back(operation);
  return found;
}

}  // namespace

TEST(ProfileOperations, NotesTimesWorkDeviceAndNesting) {
  LogicalDevice& device = *simulate_devices(1)[0];
  const auto origin = Clock::now();
  OperationTrace trace(origin);
  const at::Tensor x = at::ones({4, 8}), weight = at::ones({16, 8});
  at::mm(x, x.t());
  trace.start();
  {
    DeviceScope scope(device);
    at::linear(x, weight);
  }
  const OperationRecord record = trace.stop();
  const double ended = seconds_since(origin);
  at::mm(x, x.t());
  const auto products = named(record, "aten::mm"), layers = named(record, "aten::linear");
  ASSERT_EQ(products.size() + named(record, "aten::addmm").size(), 1U);
  ASSERT_EQ(layers.size(), 1U);
  const TracedOperation product = products.empty() ? named(record, "aten::addmm")[0] : products[0];
  EXPECT_EQ(product.flops, 2 * 4 * 8 * 16);
  EXPECT_EQ(product.device, &device);
  EXPECT_GE(product.start, layers[0].start);
  EXPECT_LE(product.end, layers[0].end);
  EXPECT_LE(layers[0].end, ended);
  // The layer's own time is what its operations leave of it.
  EXPECT_LE(layers[0].self, layers[0].end - layers[0].start - (product.end - product.start) + 1e-9);
  EXPECT_GE(layers[0].self, 0);
  EXPECT_EQ(layers[0].bytes, 0);
  EXPECT_EQ(product.used, device.memory().used() + 4 * 16 * 4);
}

TEST(ProfileOperations, KnowsTheTensorsOfAConvolutionsBackwardPass) {
  OperationTrace trace(Clock::now());
  const at::Tensor x = at::ones({2, 4, 10}), weight = at::ones({8, 4, 3}), bias = at::ones({8});
  const at::Tensor gradient = at::ones({2, 8, 8});
  trace.start();
  at::convolution_backward(gradient, x, weight, bias.sizes(), {1}, {0}, {1}, false, {0}, 1,
                           {true, true, true});
  const OperationRecord record = trace.stop();
  const auto found = named(record, "aten::convolution_backward");
  ASSERT_EQ(found.size(), 1U);
  const double sizes = 2 * (2 * 4 * 10) + 2 * (8 * 4 * 3) + 2 * (2 * 8 * 8) + 8;
  EXPECT_EQ(found[0].convolved, 4 * sizes);
  for (const TracedOperation& operation : record.operations)
    EXPECT_EQ(operation.convolved > 0, operation.name == found[0].name);
}

TEST(ProfileOperations, TellsThreadsApart) {
  OperationTrace trace(Clock::now());
  trace.start();
  const auto work = [](const char* name, int times) {
    pthread_setname_np(pthread_self(), name);
    const at::Tensor x = at::ones({4});
    for (int i = 0; i < times; ++i) at::sin(x);
  };
  std::thread first(work, "first", 3), second(work, "second", 5);
  first.join();
  second.join();
  const OperationRecord record = trace.stop();
  std::map<std::string, int> sines;
  for (const TracedOperation& operation : named(record, "aten::sin"))
    ++sines[record.threads[operation.thread]];
  EXPECT_EQ(sines, (std::map<std::string, int>{{"first", 3}, {"second", 5}}));
}

TEST(ProfileOperations, KeepsAsManyAsAskedAndCountsTheOthers) {
  OperationTrace trace(Clock::now(), 10);
  const at::Tensor x = at::ones({4});
  for (int round = 0; round < 2; ++round) {
    trace.start();
    for (int i = 0; i < 25; ++i) at::sin(x);
    const OperationRecord record = trace.stop();
    EXPECT_EQ(record.operations.size(), 10U);
    EXPECT_EQ(record.dropped, 15U);
  }
}

TEST(ProfileOperations, RefusesTwoAtOnceAndAStopWithoutAStart) {
  OperationTrace first(Clock::now()), second(Clock::now());
  EXPECT_EQ(thrown_by([&] { second.stop(); }).sentence,
            "operations were not being traced in this process");
  first.start();
  EXPECT_EQ(thrown_by([&] { second.start(); }).sentence,
            "operations are already being traced in this process");
  first.stop();
  second.start();
  EXPECT_EQ(second.stop().dropped, 0U);
}

TEST(ProfileKernels, NamesKernelsWithoutTheirTypes) {
  EXPECT_EQ(short_kernel_name("void at::native::foo<float, bar<4> >(float*, int)"),
            "at::native::foo");
  EXPECT_EQ(short_kernel_name("nvjet_hsh_128x256_TNN"), "nvjet_hsh_128x256_TNN");
  EXPECT_EQ(short_kernel_name("Memcpy HtoD (Pinned -> Device)"), "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(short_kernel_name("tandem::(anonymous namespace)::adamw_kernel<4>(Cells)"),
            "tandem::adamw_kernel");
}

TEST(ProfileKernels, HasNothingToSayWithoutAGpu) {
  KernelTrace trace(Clock::now());
  trace.start();
  at::sin(at::ones({4}));
  const KernelRecord record = trace.stop();
  EXPECT_TRUE(record.kernels.empty());
  EXPECT_TRUE(trace.stop().kernels.empty());
}

}  // namespace tandem::tests
