#include "observe/profile_attribution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "nn/work_note.h"
#include "observe/made_trace.h"
#include "observe/profile_making.h"
#include "observe/profile_summary.h"

namespace tandem::tests {

TEST(ProfileAttribution, TakesWorkFromTheTraceThatIsLinkedAndTimesFromTheOther) {
  MadeTrace eager;
  eager.kernel("void gemm<1>(float)", 9, eager.operation("aten::mm", 100, 20));
  eager.kernel("void gemm<2>(float)", 9, eager.operation("aten::mm", 300, 60));
  eager.kernel("void add<1>(float)", 9, eager.operation("aten::add", 0, 50));
  // Two steps of it, captured.
  const KernelRecord twice = captured_kernels({{"void gemm<1>(float)", 1},
                                               {"void gemm<2>(float)", 1},
                                               {"void add<1>(float)", 5},
                                               {"void gemm<1>(float)", 3},
                                               {"void gemm<2>(float)", 3},
                                               {"void add<1>(float)", 5}});
  const KernelRates rates = kernel_rates(eager.trace(), twice, 2, traced_gpu);
  ASSERT_EQ(rates.size(), 2U);
  EXPECT_DOUBLE_EQ(rates.at("gemm").flops, 2 * 400 / 8.0);
  EXPECT_DOUBLE_EQ(rates.at("gemm").bytes, 2 * 80 / 8.0);
  EXPECT_DOUBLE_EQ(rates.at("gemm").covered, 1);
  EXPECT_DOUBLE_EQ(rates.at("add").flops, 0);
  EXPECT_DOUBLE_EQ(rates.at("add").bytes, 10);
  EXPECT_TRUE(kernel_rates(eager.trace(), twice, 2, traced_gpu + 1).empty());
}

TEST(ProfileAttribution, LaunchesOfOneNameAreMatchedInTheOrderTheyRan) {
  MadeTrace eager;
  eager.kernel("add", 1, eager.operation("aten::add", 0, 600));
  eager.kernel("add", 1, -1);
  // Of what nobody knows neither the work nor the time counts.
  const KernelRates rates = kernel_rates(
      eager.trace(), captured_kernels({{"add", 6}, {"add", 1}, {"add", 4}, {"add", 1}}), 2,
      traced_gpu);
  EXPECT_DOUBLE_EQ(rates.at("add").bytes, 120);
  EXPECT_DOUBLE_EQ(rates.at("add").covered, 10 / 12.0);
}

TEST(ProfileAttribution, ACountThatDiffersIsNoHarmWhereLaunchesAreAlike) {
  MadeTrace eager;
  eager.kernel("gemm", 1, eager.operation("aten::mm", 100, 20));
  eager.kernel("add", 1, eager.operation("aten::add", 0, 50));
  eager.kernel("add", 1, eager.operation("aten::add", 0, 70));
  const KernelRates rates =
      kernel_rates(eager.trace(),
                   captured_kernels({{"gemm", 1}, {"gemm", 3}, {"add", 2}, {"add", 2}, {"add", 2}}),
                   1, traced_gpu);
  EXPECT_DOUBLE_EQ(rates.at("gemm").flops, 50);
  EXPECT_FALSE(rates.at("add").told());
  // Which says why.
  EXPECT_EQ(rates.at("add").launches, 2);
  EXPECT_EQ(rates.at("add").known, 2);
  EXPECT_EQ(rates.at("add").captured, 3);
}

TEST(ProfileAttribution, TellsOfManyLaunchesAlthoughTheDriverLostAFew) {
  // Two shapes in turn, 1000 launches; what each trace lost.
  const auto rates = [](int lost, int unlinked, int lost_captured) {
    MadeTrace eager, again;
    for (int i = 0; i < 1000; ++i) {
      const int64_t note = eager.operation("tandem::row_product", i % 2 ? 100 : 300, 40);
      if (i >= lost) eager.kernel("row_product", 1, i < lost + unlinked ? -1 : note);
      if (i >= lost_captured) again.kernel("row_product", 2, -1);
    }
    return kernel_rates(eager.trace(), again.kernels, 1, traced_gpu).at("row_product");
  };
  EXPECT_DOUBLE_EQ(rates(0, 0, 0).flops, 100);
  for (const KernelRate& one : {rates(2, 0, 0), rates(0, 2, 0), rates(0, 0, 2), rates(4, 6, 2)}) {
    EXPECT_NEAR(one.flops, 100, 0.5);
    EXPECT_NEAR(one.bytes, 20, 0.1);
  }
  EXPECT_FALSE(rates(300, 0, 0).told());
  EXPECT_FALSE(rates(0, 300, 0).told());
}

TEST(ProfileAttribution, SaysNothingOfAKernelOfWhichMuchIsNotAccountedFor) {
  MadeTrace eager;
  eager.kernel("gemm", 1, eager.operation("aten::mm", 100, 20));
  eager.kernel("gemm", 1, -1);
  const KernelRate rate =
      kernel_rates(eager.trace(), captured_kernels({{"gemm", 1}, {"gemm", 1}}), 1, traced_gpu)
          .at("gemm");
  EXPECT_FALSE(rate.told());
  EXPECT_DOUBLE_EQ(rate.covered, 0.5);
  EXPECT_EQ(rate.known, 1);
}

TEST(ProfileAttribution, GivesArithmeticToTheKernelThatDoesItOrToNone) {
  MadeTrace eager;
  // A product in two kernels, one of which adds up what the other left.
  const int64_t product = eager.operation("aten::mm", 1000, 0);
  eager.kernel("gemm", 9, product);
  eager.kernel("tail", 1, product);
  // A backward pass in two kernels alike.
  const int64_t both = eager.operation("aten::convolution_backward", 1000, 0);
  eager.kernel("dgrad", 5, both);
  eager.kernel("wgrad", 5, both);
  const KernelRates rates = kernel_rates(
      eager.trace(), captured_kernels({{"gemm", 4}, {"tail", 1}, {"dgrad", 5}, {"wgrad", 5}}), 1,
      traced_gpu);
  EXPECT_DOUBLE_EQ(rates.at("gemm").flops, 250);
  for (const char* name : {"tail", "dgrad", "wgrad"}) EXPECT_FALSE(rates.at(name).told()) << name;
}

TEST(ProfileAttribution, AProductInPartsIsThatOfTheKernelThatMultiplies) {
  MadeTrace eager;
  const int64_t split = eager.operation("aten::mm", 1000, 60);
  eager.kernel("nvjet_sss_64x64_splitK_TNN", 2, split);
  eager.kernel("void cublasLt::splitKreduce_kernel<32, 16>(int)", 3, split);
  eager.kernel("nvjet_sss_64x64_splitK_TNN", 2, eager.operation("aten::mm", 600, 20));
  const KernelRates rates =
      kernel_rates(eager.trace(),
                   captured_kernels({{"nvjet_sss_64x64_splitK_TNN", 1},
                                     {"void cublasLt::splitKreduce_kernel<32, 16>(int)", 3},
                                     {"nvjet_sss_64x64_splitK_TNN", 1}}),
                   1, traced_gpu);
  EXPECT_DOUBLE_EQ(rates.at("nvjet_sss_64x64_splitK_TNN").flops, 800);
  EXPECT_DOUBLE_EQ(rates.at("nvjet_sss_64x64_splitK_TNN").bytes, 40);
  EXPECT_FALSE(rates.at("cublasLt::splitKreduce_kernel").told());
}

// In float32 the products of gradients and outputs are summed by operations of their own, whose
// kernels the rest of the step has as well.
TEST(ProfileAttribution, WhatAnAttentionCallsKeepsItsOwnWork) {
  const std::string mul = "void at::native::vectorized_elementwise_kernel<4, Mul>(int)";
  const std::string sum = "void at::native::reduce_kernel<512, 1, Sum>(Sum)";
  MadeTrace eager;
  const int64_t attention =
      eager.operation("aten::_scaled_dot_product_efficient_attention_backward", 5000, 0);
  const int64_t inner = eager.operation("aten::_efficient_attention_backward", 0, 0, attention);
  eager.kernel(mul, 3, eager.operation("aten::mul", 0, 30, inner));
  eager.kernel(sum, 4, eager.operation("aten::sum", 0, 20, inner));
  eager.kernel("fmha_cutlassB_f32_aligned_64x64_k32_sm80(Params)", 2, inner);
  eager.kernel(mul, 3, eager.operation("aten::mul", 0, 90));
  eager.kernel(sum, 4, eager.operation("aten::sum", 0, 60));
  const KernelRates rates =
      kernel_rates(eager.trace(),
                   captured_kernels({{mul, 1},
                                     {sum, 1},
                                     {"fmha_cutlassB_f32_aligned_64x64_k32_sm80(Params)", 5},
                                     {mul, 2},
                                     {sum, 3}}),
                   1, traced_gpu);
  EXPECT_DOUBLE_EQ(rates.at("fmha_cutlassB_f32_aligned_64x64_k32_sm80").flops, 1000);
  EXPECT_DOUBLE_EQ(rates.at("at::native::vectorized_elementwise_kernel").bytes, 40);
  EXPECT_DOUBLE_EQ(rates.at("at::native::vectorized_elementwise_kernel").flops, 0);
  EXPECT_DOUBLE_EQ(rates.at("at::native::reduce_kernel").bytes, 20);
}

TEST(ProfileAttribution, AKernelOfOursMayBeNamedLikeAHelper) {
  MadeTrace eager;
  eager.kernel("tandem::reduce_rows", 1, eager.operation("tandem::reduce_rows", 100, 20));
  const KernelRates rates =
      kernel_rates(eager.trace(), captured_kernels({{"tandem::reduce_rows", 2}}), 1, traced_gpu);
  EXPECT_DOUBLE_EQ(rates.at("tandem::reduce_rows").flops, 50);
  EXPECT_DOUBLE_EQ(rates.at("tandem::reduce_rows").bytes, 10);
}

TEST(ProfileAttribution, FindsTheArithmeticOfWhatIsLaunchedFurtherDown) {
  MadeTrace eager;
  const int64_t convolution = eager.operation("aten::convolution", 600, 0);
  const int64_t inner = eager.operation("aten::_convolution", 0, 0, convolution);
  eager.kernel("implicit_gemm", 2, eager.operation("aten::cudnn_convolution", 0, 30, inner));
  const KernelRates rates =
      kernel_rates(eager.trace(), captured_kernels({{"implicit_gemm", 3}}), 1, traced_gpu);
  EXPECT_DOUBLE_EQ(rates.at("implicit_gemm").flops, 200);
  EXPECT_DOUBLE_EQ(rates.at("implicit_gemm").bytes, 10);
}

TEST(ProfileAttribution, TellsTheBytesOfLayoutsThatAreChangedForAConvolution) {
  const std::string there = "void cudnn::engines_precompiled::nchwToNhwcKernel<float>(int)";
  const std::string back = "void cudnn::engines_precompiled::nhwcToNchwKernel<float>(int)";
  MadeTrace eager;
  const int64_t convolution = eager.operation("aten::convolution", 600, 0);
  const int64_t inner = eager.operation("aten::cudnn_convolution", 0, 100, convolution);
  eager.kernel(there, 3, inner);
  eager.kernel(there, 1, inner);
  eager.kernel("sm90_xmma_fprop", 2, inner);
  eager.kernel(back, 4, inner);
  // Its backward pass reads a gradient of 30 bytes for both of its results.
  const int64_t backward = eager.operation("aten::convolution_backward", 1200, 0);
  eager.convolves(backward, 150 + 30);
  for (int i = 0; i < 4; ++i) eager.kernel(there, 1, backward);
  for (int i = 0; i < 2; ++i) eager.kernel(back, 1, backward);
  // One for three tensors: who knows for which.
  eager.kernel(there, 1, eager.operation("aten::cudnn_convolution", 0, 77));
  std::vector<std::pair<std::string, double>> ran{{there, 1}, {there, 1}, {"sm90_xmma_fprop", 1}};
  ran.emplace_back(back, 1);
  for (int i = 0; i < 5; ++i) ran.emplace_back(there, 1);
  for (int i = 0; i < 2; ++i) ran.emplace_back(back, 1);
  const KernelRates rates = kernel_rates(eager.trace(), captured_kernels(ran), 1, traced_gpu);
  // Half of the 200 bytes, and four sixths of the 360; six of seven launches are known.
  const KernelRate& first = rates.at("cudnn::engines_precompiled::nchwToNhwcKernel");
  EXPECT_DOUBLE_EQ(first.bytes, (100 + 240) / 6.0);
  EXPECT_DOUBLE_EQ(first.covered, 6 / 7.0);
  const KernelRate& second = rates.at("cudnn::engines_precompiled::nhwcToNchwKernel");
  EXPECT_DOUBLE_EQ(second.bytes, (100 + 120) / 3.0);
  EXPECT_DOUBLE_EQ(second.covered, 1);
}

TEST(ProfileAttribution, TellsNoBytesOfAnOperationOfSeveralKernels) {
  MadeTrace eager;
  const int64_t sort = eager.operation("aten::sort", 0, 500);
  eager.kernel("sort_a", 1, sort);
  eager.kernel("sort_b", 1, sort);
  for (const auto& [name, rate] :
       kernel_rates(eager.trace(), captured_kernels({{"sort_a", 1}, {"sort_b", 1}}), 1, traced_gpu))
    EXPECT_FALSE(rate.told()) << name;
}

TEST(ProfileAttribution, BytesAreToldOnlyWhereMostLaunchesTellThem) {
  MadeTrace eager;
  eager.kernel("gemm", 1, eager.operation("aten::mm", 100, 20));
  eager.kernel("gemm", 1, eager.operation("aten::mm", 100, 0));
  const KernelRate rate =
      kernel_rates(eager.trace(), captured_kernels({{"gemm", 1}, {"gemm", 1}}), 1, traced_gpu)
          .at("gemm");
  EXPECT_DOUBLE_EQ(rate.flops, 100);
  EXPECT_EQ(rate.bytes, 0);
}

TEST(ProfileAttribution, AShortNameIsToldWhenMostOfItsTimeIs) {
  MadeTrace eager;
  eager.kernel("void f<1>()", 1, eager.operation("aten::mm", 100, 0));
  eager.kernel("void f<2>()", 1, -1);
  const auto told = [&](double unknown) {
    return kernel_rates(eager.trace(),
                        captured_kernels({{"void f<1>()", 1}, {"void f<2>()", unknown}}), 1,
                        traced_gpu)
        .at("f");
  };
  EXPECT_DOUBLE_EQ(told(0.2).flops, 100);
  EXPECT_FALSE(told(0.5).told());
}

TEST(ProfileAttribution, RatesBecomeSharesOfTheLimitInTheTable) {
  LogicalDevice& device = *simulate_devices(1)[0];
  Profile profile = made_profile(device);  // 1e9 FLOP/s and 1e8 B/s at most
  const int index = device.info().cuda_index;
  profile.kernels.kernels = {
      {.name = "void f<1>(int)", .cuda_device = index, .start = 1.30, .end = 1.32},
      {.name = "g", .cuda_device = index, .start = 1.32, .end = 1.33}};
  profile.replicas[0].rates = {{"f", {.flops = 5e8, .bytes = 1e7}}};
  const auto rows = kernel_rows(profile, 0);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NEAR(rows[0].flops, 5e8, 1);
  EXPECT_NEAR(rows[0].limit, 0.5, 1e-9);
  EXPECT_EQ(rows[1].limit, 0);
}

TEST(WorkNote, IsHeardWithItsFiguresByWhoListens) {
  { const WorkNote unheard("tandem::nothing", 1, 2); }
  OperationTrace trace(Clock::now());
  trace.start();
  {
    const WorkNote note("tandem::thing", 300, 44);
    at::ones({3});
  }
  const OperationRecord record = trace.stop();
  { const WorkNote unheard("tandem::nothing", 1, 2); }
  int found = 0;
  for (const TracedOperation& operation : record.operations) {
    const std::string& name = record.names[operation.name];
    EXPECT_NE(name, "tandem::nothing");
    if (name == "aten::ones") {
      EXPECT_EQ(operation.parent, 0);
    }
    if (name != "tandem::thing") continue;
    ++found;
    EXPECT_EQ(operation.flops, 300);
    EXPECT_EQ(operation.bytes, 44);
    EXPECT_EQ(operation.parent, -1);
  }
  EXPECT_EQ(found, 1);
}

// What links a kernel to its work is that both traces number operations alike; that much can be
// seen without a GPU.
TEST(ProfileKernels, ALinkedTraceSeesTheOperationsThatAreTraced) {
  OperationTrace operations(Clock::now());
  KernelTrace kernels(Clock::now());
  const auto work = [] {
    const WorkNote note("tandem::thing", 1, 1);
    const at::Tensor x = at::ones({4, 4});
    at::linear(x, x);
  };
  kernels.start(/*linked=*/true);
  operations.start();
  work();
  std::thread(work).join();
  const OperationRecord seen = operations.stop();
  const KernelRecord record = kernels.stop();
#ifdef TANDEM_WITH_CUDA
  std::vector<std::pair<uint64_t, std::string>> ours, theirs;
  std::vector<TracedOperation> ordered = seen.operations;
  std::ranges::stable_sort(
      ordered, {}, [](const TracedOperation& one) { return std::pair(one.thread, one.order); });
  for (const TracedOperation& one : ordered)
    ours.emplace_back(seen.thread_numbers[one.thread], seen.names[one.name]);
  for (const LaunchedOperation& one : record.launches) theirs.emplace_back(one.thread, one.name);
  const auto by_thread = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::ranges::stable_sort(ours, by_thread);
  std::ranges::stable_sort(theirs, by_thread);
  EXPECT_GT(ours.size(), 10U);
  EXPECT_EQ(ours, theirs);
#else
  EXPECT_TRUE(record.launches.empty());
#endif
}

}  // namespace tandem::tests
