#include "observe/profile_join.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "nn/work_note.h"
#include "observe/made_trace.h"
#include "observe/profile_sections.h"

namespace tandem::tests {

TEST(ProfileJoin, LeavesOutWhatOnlyOneOfTheTwoSaw) {
  MadeTrace eager;
  for (int i = 0; i < 100; ++i) {
    eager.operation("tandem::row_norm", 0, 1);
    eager.operation("tandem::row_product", i, 1);
    eager.operation(i % 3 ? "tandem::music_attention" : "tandem::row_product", i, 1);
  }
  std::vector<LaunchedOperation> launches = eager.kernels.launches;
  launches.erase(launches.begin() + 120, launches.begin() + 122);  // Kineto missed two
  launches.insert(launches.begin() + 30, {"aten::ones", 5, MadeTrace::number(29)});
  eager.operations.operations.erase(eager.operations.operations.begin() + 200);  // and we one
  const auto places = joined_operations(eager.operations, launches);
  EXPECT_GE(places.size(), 295U);
  for (const auto& [number, place] : places) {
    const TracedOperation& one = eager.operations.operations[place];
    EXPECT_EQ(MadeTrace::number(one.order), number);
  }
}

TEST(ProfileJoin, JoinsNothingOfAThreadTheyTellDifferentStoriesOf) {
  MadeTrace eager;
  for (int i = 0; i < 200; ++i) eager.operation(i % 2 ? "aten::mm" : "aten::add", 1, 1);
  std::vector<LaunchedOperation> other = eager.kernels.launches;
  EXPECT_EQ(joined_operations(eager.operations, other).size(), 200U);
  for (size_t i = 50; i < other.size(); ++i) other[i].name = "aten::sin";
  EXPECT_TRUE(joined_operations(eager.operations, other).empty());
  for (LaunchedOperation& one : other) one.thread = 6;
  EXPECT_TRUE(joined_operations(eager.operations, other).empty());
  EXPECT_TRUE(joined_operations(eager.operations, {}).empty());
  eager.operations.thread_numbers.clear();
  EXPECT_TRUE(joined_operations(eager.operations, eager.kernels.launches).empty());
}

#ifdef TANDEM_WITH_CUDA
TEST(ProfileJoin, FindsEveryOperationOfAPassAndItsGradients) {
  const auto pass = [] {
    at::Tensor weight = at::ones({4, 4});
    weight.requires_grad_(true);
    const WorkNote note("tandem::thing", 1, 1);
    at::gelu(at::linear(at::ones({3, 4}), weight)).sum().backward();
  };
  OperationRecord operations;
  KernelRecord kernels;
  DoubleTrace trace(/*cuda=*/true, /*linked=*/true, Clock::now());
  pass();
  std::thread(pass).join();
  trace.stop(operations, kernels);
  const auto places = joined_operations(operations, kernels.launches);
  EXPECT_GT(places.size(), 20U);
  EXPECT_EQ(places.size(), operations.operations.size());
  for (const LaunchedOperation& one : kernels.launches) {
    const auto found = places.find(one.number);
    ASSERT_NE(found, places.end()) << one.name;
    EXPECT_EQ(operations.names[operations.operations[found->second].name], one.name);
  }
}
#endif

}  // namespace tandem::tests
