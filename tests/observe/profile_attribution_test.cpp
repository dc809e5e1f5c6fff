// Made-up traces whose every figure is known.
#include "observe/profile_attribution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "nn/work_note.h"
#include "observe/profile_kernels.h"
#include "observe/profile_operations.h"
#include "observe/profile_summary.h"
#include "observe/profile_making.h"

namespace tandem::tests {
namespace {

constexpr int gpu = 2;

// A trace of one thread: operations one after another, and what Kineto says of them.
class MadeTrace {
 public:
  MadeTrace() {
    operations.threads = {"replica-0"};
    operations.thread_ids = {4711};
    operations.thread_numbers = {5};
  }
  // Returns its order.
  int64_t operation(const std::string& name, double flops, double bytes, int64_t parent = -1) {
    const auto order = static_cast<int64_t>(operations.operations.size());
    const auto found = std::ranges::find(operations.names, name);
    const auto place = static_cast<uint32_t>(found - operations.names.begin());
    if (found == operations.names.end()) operations.names.push_back(name);
    operations.operations.push_back({.name = place,
                                     .thread = 0,
                                     .flops = flops,
                                     .bytes = bytes,
                                     .order = order,
                                     .parent = parent});
    kernels.launches.push_back({name, 5, number(order)});
    return order;
  }
  void kernel(const std::string& name, double seconds, int64_t launched_by, int device = gpu) {
    const double start = kernels.kernels.empty() ? 0 : kernels.kernels.back().end;
    kernels.kernels.push_back({.name = name,
                               .cuda_device = device,
                               .start = start,
                               .end = start + seconds,
                               .launch = launched_by < 0 ? 0 : number(launched_by)});
  }
  LinkedTrace trace(int64_t steps = 1) const { return {operations, kernels, steps}; }
  static uint64_t number(int64_t order) { return 900 + static_cast<uint64_t>(order); }

  OperationRecord operations;
  KernelRecord kernels;
};

// The captured trace: kernels alone.
KernelRecord captured(const std::vector<std::pair<std::string, double>>& kernels) {
  MadeTrace made;
  for (const auto& [name, seconds] : kernels) made.kernel(name, seconds, -1);
  return made.kernels;
}

}  // namespace

TEST(ProfileAttribution, TakesWorkFromTheTraceThatIsLinkedAndTimesFromTheOther) {
  MadeTrace eager;
  eager.kernel("void gemm<1>(float)", 9, eager.operation("aten::mm", 100, 20));
  eager.kernel("void gemm<2>(float)", 9, eager.operation("aten::mm", 300, 60));
  eager.kernel("void add<1>(float)", 9, eager.operation("aten::add", 0, 50));
  // Two steps of it, captured.
  const KernelRecord twice = captured({{"void gemm<1>(float)", 1},
                                       {"void gemm<2>(float)", 1},
                                       {"void add<1>(float)", 5},
                                       {"void gemm<1>(float)", 3},
                                       {"void gemm<2>(float)", 3},
                                       {"void add<1>(float)", 5}});
  const KernelRates rates = kernel_rates({eager.trace()}, twice, 2, gpu);
  ASSERT_EQ(rates.size(), 2U);
  EXPECT_DOUBLE_EQ(rates.at("gemm").flops, 2 * 400 / 8.0);
  EXPECT_DOUBLE_EQ(rates.at("gemm").bytes, 2 * 80 / 8.0);
  EXPECT_DOUBLE_EQ(rates.at("add").flops, 0);
  EXPECT_DOUBLE_EQ(rates.at("add").bytes, 10);
  EXPECT_TRUE(kernel_rates({eager.trace()}, twice, 2, gpu + 1).empty());
}

TEST(ProfileAttribution, SaysNothingOfAKernelThatRanMoreOrLessOften) {
  MadeTrace eager;
  eager.kernel("gemm", 1, eager.operation("aten::mm", 100, 20));
  eager.kernel("add", 1, eager.operation("aten::add", 0, 50));
  const KernelRates rates =
      kernel_rates({eager.trace()}, captured({{"gemm", 1}, {"gemm", 1}, {"add", 2}}), 1, gpu);
  EXPECT_FALSE(rates.contains("gemm"));
  EXPECT_DOUBLE_EQ(rates.at("add").bytes, 25);
}

TEST(ProfileAttribution, SaysNothingOfAKernelOfWhichOneLaunchIsNotAccountedFor) {
  MadeTrace eager;
  eager.kernel("gemm", 1, eager.operation("aten::mm", 100, 20));
  eager.kernel("gemm", 1, -1);
  EXPECT_TRUE(kernel_rates({eager.trace()}, captured({{"gemm", 1}, {"gemm", 1}}), 1, gpu).empty());
}

TEST(ProfileAttribution, GivesArithmeticToTheKernelThatDoesItOrToNone) {
  MadeTrace eager;
  // A product in two kernels, one of which adds up what the other left.
  const int64_t product = eager.operation("aten::mm", 1000, 0);
  eager.kernel("gemm", 9, product);
  eager.kernel("reduce", 1, product);
  // A backward pass in two kernels alike.
  const int64_t both = eager.operation("aten::convolution_backward", 1000, 0);
  eager.kernel("dgrad", 5, both);
  eager.kernel("wgrad", 5, both);
  const KernelRates rates = kernel_rates(
      {eager.trace()}, captured({{"gemm", 4}, {"reduce", 1}, {"dgrad", 5}, {"wgrad", 5}}), 1, gpu);
  ASSERT_EQ(rates.size(), 1U);
  EXPECT_DOUBLE_EQ(rates.at("gemm").flops, 250);
}

TEST(ProfileAttribution, FindsTheArithmeticOfWhatIsLaunchedFurtherDown) {
  MadeTrace eager;
  const int64_t convolution = eager.operation("aten::convolution", 600, 0);
  const int64_t inner = eager.operation("aten::_convolution", 0, 0, convolution);
  eager.kernel("implicit_gemm", 2, eager.operation("aten::cudnn_convolution", 0, 30, inner));
  const KernelRates rates = kernel_rates({eager.trace()}, captured({{"implicit_gemm", 3}}), 1, gpu);
  EXPECT_DOUBLE_EQ(rates.at("implicit_gemm").flops, 200);
  EXPECT_DOUBLE_EQ(rates.at("implicit_gemm").bytes, 10);
}

TEST(ProfileAttribution, TellsNoBytesOfAnOperationOfSeveralKernels) {
  MadeTrace eager;
  const int64_t sort = eager.operation("aten::sort", 0, 500);
  eager.kernel("sort_a", 1, sort);
  eager.kernel("sort_b", 1, sort);
  EXPECT_TRUE(
      kernel_rates({eager.trace()}, captured({{"sort_a", 1}, {"sort_b", 1}}), 1, gpu).empty());
}

TEST(ProfileAttribution, TellsNothingWhereTheTwoDidNotSeeTheSameOperations) {
  MadeTrace eager;
  eager.kernel("gemm", 1, eager.operation("aten::mm", 100, 20));
  eager.kernel("add", 1, eager.operation("aten::add", 0, 50));
  eager.kernels.launches.push_back({"aten::mm", 5, 2000});  // Kineto saw one more
  const KernelRecord once = captured({{"gemm", 1}, {"add", 1}});
  const KernelRates rates = kernel_rates({eager.trace()}, once, 1, gpu);
  EXPECT_FALSE(rates.contains("gemm"));
  EXPECT_TRUE(rates.contains("add"));
  eager.operations.thread_numbers.clear();
  EXPECT_TRUE(kernel_rates({eager.trace()}, once, 1, gpu).empty());
  EXPECT_TRUE(kernel_rates({}, once, 1, gpu).empty());
}

TEST(ProfileAttribution, AShortNameIsToldWhenNearlyAllOfItsTimeIs) {
  MadeTrace eager;
  eager.kernel("void f<1>()", 1, eager.operation("aten::mm", 100, 0));
  eager.kernel("void f<2>()", 1, -1);
  const auto told = [&](double unknown) {
    return kernel_rates({eager.trace()}, captured({{"void f<1>()", 1}, {"void f<2>()", unknown}}),
                        1, gpu);
  };
  EXPECT_DOUBLE_EQ(told(0.01).at("f").flops, 100);
  EXPECT_TRUE(told(0.5).empty());
}

TEST(ProfileAttribution, ASecondTraceTellsWhatTheFirstCannot) {
  MadeTrace pass, first;
  pass.kernel("gemm", 1, pass.operation("aten::mm", 100, 0));
  pass.kernel("adamw", 1, -1);
  first.kernel("gemm", 1, first.operation("aten::mm", 900, 0));
  first.kernel("adamw", 1, first.operation("tandem::adamw", 0, 70));
  const KernelRates rates =
      kernel_rates({pass.trace(), first.trace()}, captured({{"gemm", 1}, {"adamw", 1}}), 1, gpu);
  EXPECT_DOUBLE_EQ(rates.at("gemm").flops, 100);
  EXPECT_DOUBLE_EQ(rates.at("adamw").bytes, 70);
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
