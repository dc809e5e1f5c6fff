#include "observe/profile_report.h"

#include <gtest/gtest.h>

#include "observe/profile_making.h"
#include "util/scratch.h"

namespace tandem::tests {

TEST(ProfileReport, ShowsTimelineTablesAndMemory) {
  const Profile profile = made_profile(*simulate_devices(1)[0]);
  const std::string html = make_profile_report(profile);
  for (const char* id : {"timeline", "steps", "replica-0", "beside"})
    EXPECT_TRUE(contains(html, "<section id=\"" + std::string(id) + "\">")) << id;
  EXPECT_TRUE(contains(html, "<td>pass generator</td><td>20.000</td>"));
  EXPECT_TRUE(contains(html, "<td>aten::mm</td><td>1.0</td><td>10.000</td>"));
  EXPECT_TRUE(contains(html, "<td>weights</td><td>600 B</td>"));
  EXPECT_TRUE(contains(html, "<title>step 7: wait for data · 20.000 ms</title>"));
  // The timed steps lie before what the picture shows.
  EXPECT_FALSE(contains(html, "<title>step 6: "));
}

TEST(ProfileReport, NamesFromOutsideStayText) {
  LogicalDevice& device = *simulate_devices(1)[0];
  Profile profile = made_profile(device);
  profile.operations.names[1] = "</script><img src=x onerror=alert(1)>";
  profile.operations.threads[1] = "<b>feed";
  profile.kernels.failure = "<i>no";
  const std::string html = make_profile_report(profile);
  for (const char* markup : {"<img src=x", "<b>feed", "<i>no"})
    EXPECT_FALSE(contains(html, markup)) << markup;
  EXPECT_TRUE(contains(html, "&lt;img src=x"));
}

TEST(ProfileReport, ManyShortOperationsAreDrawnAsFewBoxes) {
  LogicalDevice& device = *simulate_devices(1)[0];
  Profile profile = made_profile(device);
  for (int i = 0; i < 50000; ++i) {
    const double start = 1.35 + i * 1e-6;
    profile.operations.operations.push_back({.name = 1,
                                             .thread = 0,
                                             .device = &device,
                                             .start = start,
                                             .end = start + 9e-7,
                                             .self = 9e-7});
  }
  EXPECT_LT(timeline_svg(profile).size(), size_t{600000});
}

TEST(ProfileReport, OfTimedStepsAloneShowsThose) {
  Profile profile = made_profile(*simulate_devices(1)[0]);
  profile.replicas[0].traced.clear();
  profile.operations = {};
  EXPECT_TRUE(contains(timeline_svg(profile), "<title>step 6: read back"));
}

}  // namespace tandem::tests
