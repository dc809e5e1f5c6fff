#include "observe/tune_clips.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

// Captions take a second; a token a hundredth and, for each before it, a hundred thousandth more.
// A prompt is read at once.
struct MadeEngine {
  int64_t steps = 0;
  int calls = 0;
  double operator()(int64_t prompt, int64_t tokens) {
    steps += tokens;
    double seconds = 1 + (prompt > 0 ? 0.3 : 0) + (++calls == 1 ? 5 : 0);
    for (int64_t at = prompt; at < prompt + tokens; ++at)
      seconds += 0.01 + 1e-5 * static_cast<double>(at);
    return seconds;
  }
};

double whole_seconds(int64_t tokens) {
  MadeEngine engine{.calls = 1};
  return engine(0, tokens);
}

ClipTimes times_of(MadeEngine& engine, int64_t tokens, double seconds = 0) {
  return time_clips(excerpt_of(tokens, 1503), seconds,
                    [&](int64_t prompt, int64_t count) { return engine(prompt, count); });
}

}  // namespace

TEST(TuneClips, APartFromTheMiddleTellsWhatAWholeClipTakes) {
  for (const int64_t tokens : {255, 503, 1503}) {
    MadeEngine engine;
    const ClipTimes times = times_of(engine, tokens);
    EXPECT_NEAR(times.seconds / whole_seconds(tokens), 1, 0.02) << tokens;
    EXPECT_LE(engine.steps, 250) << tokens;
  }
}

TEST(TuneClips, ShortClipsAndWindowsAreMeasuredWhole) {
  EXPECT_TRUE(excerpt_of(200, 1503).is_whole());
  EXPECT_TRUE(excerpt_of(3000, 1503).is_whole());
  EXPECT_EQ(describe(excerpt_of(200, 1503)), "");
  EXPECT_EQ(describe(excerpt_of(1503, 1503)),
            "100 of 1503 tokens, from the middle of a clip, scaled to all of it");
  MadeEngine engine;
  EXPECT_DOUBLE_EQ(times_of(engine, 100, 10).seconds, whole_seconds(100))
      << "the first is left out";
}

TEST(TuneClips, ALongFirstBatchCountsAndOthersAreRepeated) {
  MadeEngine slow;
  const ClipTimes once = times_of(slow, 100, 0.1);
  EXPECT_EQ(once.count, 1);
  EXPECT_EQ(slow.calls, 1);
  MadeEngine twice;  // a round takes 3.7 seconds
  EXPECT_EQ(times_of(twice, 255, 1.5).count, 2);
  MadeEngine again;
  const ClipTimes times = times_of(again, 1503, 1000);
  EXPECT_EQ(times.count, 8);
  EXPECT_NEAR(times.deviation, 0, 1e-9);
}

}  // namespace tandem
