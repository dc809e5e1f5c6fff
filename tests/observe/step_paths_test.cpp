#include "observe/step_paths.h"

#include <gtest/gtest.h>

namespace tandem {

TEST(StepPaths, MeasuresEveryChoiceFromTheOldestToTheNewest) {
  std::vector<FewRows> seen;
  const std::vector<StepPath> paths = measure_step_paths([&](const FewRows& rows) {
    seen.push_back(rows);
    return 0.5 * static_cast<double>(seen.size());
  });
  const std::vector<std::string> names = {"kernels in turn", "keys fetched ahead", "one kernel"};
  ASSERT_EQ(paths.size(), names.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(paths[i].name, names[i]);
    EXPECT_EQ(paths[i].seconds, 0.5 * static_cast<double>(i + 1));
    EXPECT_EQ(seen[i].early, i >= 1);
    EXPECT_EQ(seen[i].whole, i == 2);
  }
}

}  // namespace tandem
