#include "observe/step_paths.h"

#include <gtest/gtest.h>

namespace tandem {

TEST(StepPaths, MeasuresEachChoiceAloneAndAllTogether) {
  std::vector<FewRows> seen;
  const std::vector<StepPath> paths = measure_step_paths([&](const FewRows& rows) {
    seen.push_back(rows);
    return 0.5 * static_cast<double>(seen.size());
  });
  const std::vector<std::string> names = {"apart", "roomy", "joined", "early", "all"};
  ASSERT_EQ(paths.size(), names.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(paths[i].name, names[i]);
    EXPECT_EQ(paths[i].seconds, 0.5 * static_cast<double>(i + 1));
    EXPECT_EQ(seen[i].roomy, i == 1 || i == 4);
    EXPECT_EQ(seen[i].joined, i == 2 || i == 4);
    EXPECT_EQ(seen[i].early, i == 3 || i == 4);
  }
}

}  // namespace tandem
