#include "observe/music_bench.h"

#include <gtest/gtest.h>

#include "device/registry.h"

namespace tandem {

// Milliseconds a step at 4.3 TB/s and 1500 steps, reckoned apart from this program.
TEST(MusicBench, TheFloorIsWhatMemoryAllows) {
  const auto floor = [](const std::string& size, int64_t batch, const std::string& cache = "same") {
    return 1e3 * music_step_floor({.size = size, .cache = cache}, batch);
  };
  EXPECT_NEAR(floor("small", 1), 0.205, 0.001);
  EXPECT_NEAR(floor("small", 32), 1.36, 0.005);
  EXPECT_NEAR(floor("small", 128), 4.94, 0.06);
  EXPECT_NEAR(floor("medium", 64), 7.90, 0.02);
  EXPECT_NEAR(floor("large", 32), 6.09, 0.01);
  // Half the bytes of keys and values: 2.04 s for 1500 steps of 64 clips.
  EXPECT_NEAR(1.5 * floor("small", 64, "int8"), 2.04, 0.15);
}

TEST(MusicBench, TimesClipsWithTheirSoundOnAnyDevice) {
  const MusicBench bench = bench_music(DeviceRegistry::get().cpu(), {.size = "tiny",
                                                                     .batches = {1, 2},
                                                                     .steps = 8,
                                                                     .text_tokens = 5,
                                                                     .whole_batches = 1,
                                                                     .precision = "fp32"});
  ASSERT_EQ(bench.batches.size(), 2u);
  EXPECT_EQ(bench.precision, "fp32");
  for (const MusicBatchBench& batch : bench.batches) {
    EXPECT_TRUE(batch.fits);
    EXPECT_GT(batch.step_seconds, 0);
    EXPECT_NEAR(batch.step_seconds * 8, batch.decode_seconds, 1e-9);
    EXPECT_GT(batch.whole_seconds, 0);
    EXPECT_GT(batch.sound_seconds, 0);
    EXPECT_NEAR(batch.clips_per_second * batch.decode_seconds, static_cast<double>(batch.batch),
                1e-9);
  }
}

}  // namespace tandem
