#include "generate/music_plan.h"

#include <gtest/gtest.h>

#include "generate/music_cost.h"
#include "models/musicgen/musicgen.h"
#include "support/captured.h"

namespace tandem {
namespace {

constexpr int64_t gib = int64_t{1} << 30;

// 30 s clips of a published size on H200s.
MusicPlanRequest planned(const std::string& size, int64_t clips, size_t devices = 1) {
  MusicPlanRequest request{.model = Musicgen::config_of(size),
                           .engine = {.precision = "fp16"},
                           .music = {.new_tokens = 1503, .longest_text = 128},
                           .clips = clips,
                           .devices = {}};
  for (size_t i = 0; i < devices; ++i) {
    request.devices.push_back({.name = "/GPU:" + std::to_string(i),
                               .hardware = "NVIDIA H200",
                               .free_memory = 140 * gib,
                               .gpu = true});
  }
  return request;
}

TEST(MusicPlan, TakesTheBatchThatLeavesAnEighthFree) {
  for (const char* size : {"small", "medium", "large"}) {
    const MusicPlan plan = plan_music(planned(size, 100'000, 2));
    EXPECT_GE(plan.free_share(), 0.10) << size;
    EXPECT_LE(plan.free_share(), 0.15) << size;
    EXPECT_EQ(plan.shares.size(), 2u);
    EXPECT_EQ(plan.shares[0] + plan.shares[1], plan.batch_size);
  }
  const MusicPlan small = plan_music(planned("small", 100'000)),
                  large = plan_music(planned("large", 100'000));
  EXPECT_GT(small.batch_size, 2 * large.batch_size);
}

TEST(MusicPlan, TakesNoMoreThanThereAreClips) {
  EXPECT_EQ(plan_music(planned("small", 3)).batch_size, 3);
  EXPECT_EQ(plan_music(planned("small", 3, 2)).batch_size, 4);
  EXPECT_EQ(plan_music(planned("small", 1, 2)).shares, (std::vector<int64_t>{1, 1}));
}

TEST(MusicPlan, AnEightBitCacheHoldsMoreClips) {
  MusicPlanRequest request = planned("large", 100'000);
  const int64_t before = plan_music(request).batch_size;
  request.engine.cache = "int8";
  EXPECT_GT(plan_music(request).batch_size, before * 3 / 2);
}

TEST(MusicPlan, GivesTheRemainderToTheLast) {
  MusicPlanRequest request = planned("small", 1000, 3);
  request.batch_size = 64;
  EXPECT_EQ(plan_music(request).shares, (std::vector<int64_t>{21, 21, 22}));
}

TEST(MusicPlan, LowersABatchThatCannotFitAndSaysSo) {
  MusicPlanRequest request = planned("large", 1000);
  request.batch_size = 4096;
  const MusicPlan plan = plan_music(request);
  EXPECT_LT(plan.batch_size, 4096);
  EXPECT_GE(plan.free_share(), 0);
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_NE(plan.notes[0].find("a batch of 4096 takes"), std::string::npos) << plan.notes[0];
  request.batch_size = 16;
  EXPECT_EQ(plan_music(request).batch_size, 16);
  EXPECT_TRUE(plan_music(request).notes.empty());
}

TEST(MusicPlan, RaisesABatchThatLeavesDevicesIdle) {
  MusicPlanRequest request = planned("small", 10, 4);
  request.batch_size = 2;
  const MusicPlan plan = plan_music(request);
  EXPECT_EQ(plan.shares, (std::vector<int64_t>{1, 1, 1, 1}));
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_NE(plan.notes[0].find("would leave devices idle"), std::string::npos);
}

TEST(MusicPlan, RefusesADeviceThatCannotHoldOneClip) {
  MusicPlanRequest request = planned("large", 10, 2);
  request.devices[1].free_memory = gib;  // the smallest decides
  for (const auto& batch : {std::optional<int64_t>{}, std::optional<int64_t>{2}}) {
    request.batch_size = batch;
    const Error error = error_of([&] { plan_music(request); });
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("one clip of 1503 tokens takes"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("1.0 GiB are free"), std::string::npos);
  }
}

TEST(MusicPlan, CountsStepsWindowsAndSeconds) {
  MusicPlanRequest request = planned("small", 100, 2);
  request.batch_size = 32;
  MusicPlan plan = plan_music(request);
  EXPECT_EQ(plan.steps, 1503);
  EXPECT_EQ(plan.batches, 4);  // 50 clips on each device, 16 at a time
  EXPECT_DOUBLE_EQ(plan.clip_seconds, 30);
  EXPECT_GT(plan.seconds, 3 * plan.batch_seconds);
  EXPECT_LT(plan.seconds, 4 * plan.batch_seconds);
  request.music.new_tokens = 3003;  // a minute
  plan = plan_music(request);
  EXPECT_DOUBLE_EQ(plan.clip_seconds, 60);
  EXPECT_GT(plan.windows, 1);
  EXPECT_GT(plan.steps, 3003);  // each window draws the delay again
}

TEST(MusicPlan, FramesAndTokens) {
  const MusicDecoderSize mono, stereo{.codebooks = 8, .channels = 2};
  for (const auto& [tokens, frames] :
       {std::pair(1503, 1500), std::pair(1024, 1021), std::pair(256, 253), std::pair(6, 3),
        std::pair(5, 5), std::pair(1, 1)}) {
    EXPECT_EQ(frames_of_tokens(mono, tokens), frames) << tokens;
    EXPECT_EQ(frames_of_tokens(stereo, tokens), frames) << tokens;
  }
  for (int64_t frames = 1; frames < 20; ++frames)
    EXPECT_EQ(frames_of_tokens(mono, tokens_of_frames(mono, frames)), frames);
  EXPECT_EQ(tokens_of_frames(mono, 1500), 1503);
}

// The known numbers of the published sizes.
TEST(MusicCost, CountsWhatAStepReadsAndTheCodecMultiplies) {
  const MusicEngineOptions half{.precision = "fp16"};
  EXPECT_NEAR(step_weight_bytes(Musicgen::config_of("small").decoder, half), 0.721e9, 0.001e9);
  EXPECT_NEAR(step_weight_bytes(Musicgen::config_of("medium").decoder, half), 3.196e9, 0.003e9);
  EXPECT_NEAR(step_weight_bytes(Musicgen::config_of("large").decoder, half), 5.671e9, 0.003e9);
  EXPECT_NEAR(codec_flops_a_frame(Musicgen::config_of("small").codec) * 1500, 233e9, 1e9);
}

TEST(MusicCost, GrowsWithLengthBatchAndModelAndNeverBeatsTheBytes) {
  const auto seconds = [](const std::string& size, int64_t clips, int64_t tokens) {
    MusicPlanRequest request = planned(size, clips);
    request.music.new_tokens = tokens;
    request.batch_size = clips;
    return plan_music(request).batch_seconds;
  };
  // Floors of a batch at 4.8 TB/s.
  EXPECT_GT(seconds("small", 32, 1503), 2.04 * 4.3 / 4.8);
  EXPECT_LT(seconds("small", 32, 1503), 3 * 2.04);
  EXPECT_GT(seconds("large", 64, 1503), 16.3 * 4.3 / 4.8);
  EXPECT_LT(seconds("large", 64, 1503), 3 * 16.3);
  EXPECT_GT(seconds("small", 64, 1503), seconds("small", 32, 1503));
  EXPECT_GT(seconds("small", 32, 1503), 2 * seconds("small", 32, 750));
}

TEST(MusicCost, KnowsGpusByTheirWholeNames) {
  const auto speed = [](const std::string& hardware, int64_t sharing = 1) {
    return music_device_speed({.hardware = hardware, .gpu = true, .sharing = sharing});
  };
  EXPECT_TRUE(speed("NVIDIA H200").known);
  EXPECT_FALSE(speed("NVIDIA GH200 480GB").known);
  EXPECT_FALSE(speed("A card of tomorrow").known);
  EXPECT_LT(speed("NVIDIA H100 PCIe").bytes, speed("NVIDIA H100 80GB HBM3").bytes);
  EXPECT_LT(speed("NVIDIA L4").bytes, speed("NVIDIA L40S").bytes);
  EXPECT_DOUBLE_EQ(speed("NVIDIA H200", 2).bytes, speed("NVIDIA H200").bytes / 2);
  EXPECT_FALSE(music_device_speed({.hardware = "CPU"}).known);
}

}  // namespace
}  // namespace tandem
