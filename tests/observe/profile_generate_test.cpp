// Real batches of a small random MusicGen model, profiled on simulated devices and on the CPU.
#include "observe/profile_generate.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "device/registry.h"
#include "device/simulated.h"
#include "models/musicgen/musicgen.h"
#include "observe/profile_making.h"
#include "observe/profile_report.h"
#include "observe/profile_summary.h"
#include "observe/profile_trace.h"
#include "support/tiny_musicgen.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

constexpr int64_t tokens = 96;  // long beside what threads take to hand over

const Musicgen& small_music() {
  static const Musicgen model = Musicgen::load(tiny_musicgen_folder());
  return model;
}

MusicProfileTask music_task(const std::vector<LogicalDevice*>& devices) {
  return {.model = small_music(),
          .devices = devices,
          .shares = std::vector<int64_t>(devices.size(), 2),
          .engine = {.precision = "fp32"},
          .music = {.new_tokens = tokens, .longest_text = 8},
          .request =
              [](int64_t clip) {
                return MusicRequest{.text_ids = {3 + clip % 50, 7, 1},
                                    .seed = static_cast<uint64_t>(clip)};
              },
          .format = {.rate = 16000}};
}

ProfileOptions short_music_profile() {
  return {.steps = 2, .traced_steps = 1, .cost_rounds = 0, .limits = false};
}

std::vector<std::string> words_of(const RecordedStep& step) {
  std::vector<std::string> words;
  for (const RecordedPart& part : step.parts) words.emplace_back(part.kind->word);
  return words;
}

size_t left_behind() {
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
    count += entry.path().filename().string().starts_with("tandem-profile-");
  return count;
}

}  // namespace

TEST(ProfileGenerate, PartsAddUpToTheBatchOnSimulatedDevicesAndTheCpu) {
  const auto simulated = simulate_devices(2);
  for (const auto& devices : {simulated, {&DeviceRegistry::get().cpu()}}) {
    const MusicProfileTask task = music_task(devices);
    const Profile profile =
        profile_in_a_quiet_moment([&] { return profile_generation(task, short_music_profile()); });
    ASSERT_EQ(profile.replicas.size(), devices.size());
    EXPECT_EQ(profile.rows, static_cast<int64_t>(2 * devices.size()));
    for (const ProfiledReplica& replica : profile.replicas) {
      ASSERT_EQ(replica.timed.size(), 2U);
      ASSERT_EQ(replica.traced.size(), 1U);
      EXPECT_EQ(words_of(replica.timed[1]),
                (std::vector<std::string>{"captions", "decoding", "change of threads", "sound",
                                          "copy to the host", "writing", "sound",
                                          "copy to the host", "writing", "change of threads"}));
      const StepFigures figures = step_figures_of(profile, replica);
      EXPECT_GT(figures.accounted, 0.97);
      EXPECT_LE(figures.accounted, 1.0);
      EXPECT_NEAR(figures.mean / figures.wall, 1, 0.03);
      double sum = 0;
      for (const PartRow& part : figures.parts) sum += part.seconds;
      EXPECT_NEAR(sum, figures.mean, 1e-9);
    }
  }
}

TEST(ProfileGenerate, TellsStepsOfDecodingAndBatchesThatFollowEachOther) {
  const Profile profile =
      profile_generation(music_task(simulate_devices(1)), short_music_profile());
  EXPECT_EQ(profile.music->decoding_steps, tokens);
  const ProfiledReplica& replica = profile.replicas[0];
  const BatchFigures batch = batch_figures_of(profile, replica);
  const StepFigures step = step_figures_of(profile, replica);
  EXPECT_NEAR(batch.decoding_step * tokens, step.seconds_of(kind_of(MusicPart::decoding)), 1e-9);
  EXPECT_NEAR(batch.clips_per_second * step.mean, 2, 1e-9);
  EXPECT_GE(batch.hidden, 0);
  EXPECT_LE(batch.hidden, 1);
  EXPECT_GT(batch.following, 0);
  EXPECT_LE(batch.following, step.mean);
}

TEST(ProfileGenerate, HidesTheSoundOfAllBatchesButTheLast) {
  Profile profile;
  profile.music = MusicFigures{.decoding_steps = 10, .following = 3, .following_seconds = 0.28};
  RecordedStep step{.device = {0, 0.12}, .parts = {}};
  step.parts = {{.kind = &kind_of(MusicPart::decoding), .device = {0, 0.08}},
                {.kind = &kind_of(MusicPart::sound), .device = {0.08, 0.11}},
                {.kind = &kind_of(MusicPart::hand_over), .device = {0.11, 0.12}}};
  const ProfiledReplica replica{.rows = 6, .timed = {step}, .traced = {}};
  // Three alone take 0.36; 0.04 of the first two could be hidden.
  const BatchFigures batch = batch_figures_of(profile, replica);
  EXPECT_NEAR(batch.hidden, 1, 1e-9);
  EXPECT_NEAR(batch.following, 0.08, 1e-9);
  EXPECT_NEAR(batch.following_clips_per_second, 75, 1e-6);
  EXPECT_NEAR(batch.decoding_step, 0.008, 1e-9);
  profile.music->following_seconds = 0.32;
  EXPECT_NEAR(batch_figures_of(profile, replica).hidden, 0.5, 1e-9);
}

TEST(ProfileGenerate, TracesOperationsOfTheDeviceAndMemory) {
  LogicalDevice& device = *simulate_devices(1)[0];
  const Profile profile = profile_generation(music_task({&device}), short_music_profile());
  std::map<std::string, double> calls;
  double share = 0;
  for (const WorkRow& row : operation_rows(profile, 0)) {
    calls[row.name] = row.calls;
    share += row.share;
  }
  EXPECT_GE(calls["aten::native_layer_norm"], tokens);
  EXPECT_GT(share, 0);
  EXPECT_LE(share, 1.05);
  EXPECT_GT(profile.replicas[0].largest_rise, 0U);  // keys and values
  EXPECT_LE(profile.replicas[0].most_used, device.memory().peak());
  const ProfileTrace trace = make_trace(profile);
  EXPECT_EQ(trace.counts.steps, 2 + 1);
  EXPECT_EQ(trace.counts.parts, 3 * 10);
  const auto json = nlohmann::json::parse(trace.json);
  EXPECT_EQ(json["otherData"]["stage"], "generate");
}

TEST(ProfileGenerate, SaysSoInTextJsonAndPage) {
  ProfileOptions options = short_music_profile();
  options.cost_rounds = 1;
  options.limits = true;
  const Profile profile = profile_generation(music_task(simulate_devices(1)), options);
  const std::string text = profile_text(profile);
  for (const char* words :
       {"2 clips of 96 tokens: ", " ms a batch ± ", "clips/s", "captions ", "writing ",
        "decoding: 96 steps a batch, ", "batches that follow each other: ", "of batch",
        "the profiling itself: "})
    EXPECT_TRUE(contains(text, words)) << words << "\n" << text;
  EXPECT_FALSE(contains(text, "copies to the model")) << text;
  const auto json = nlohmann::json::parse(profile_json(profile));
  EXPECT_EQ(json["for"], "generate");
  EXPECT_EQ(json["replicas"][0]["batch"]["decoding_steps"], tokens);
  EXPECT_EQ(json["replicas"][0]["batch"]["clips"], 2);
  EXPECT_GT(json["replicas"][0]["batch"]["following"]["ms"].get<double>(), 0);
  EXPECT_GT(json["cost"]["plain_step_ms"].get<double>(), 0);
  EXPECT_FALSE(json.contains("overlap"));
  const std::string html = make_profile_report(profile);
  for (const char* words : {"Profile of generating", "clips a second", "<td>decoding</td>",
                            "ms a batch", ": decoding · "})
    EXPECT_TRUE(contains(html, words)) << words;
}

TEST(ProfileGenerate, TracesLongClipsInPart) {
  Profile profile = profile_generation(music_task(simulate_devices(1)), short_music_profile());
  EXPECT_FALSE(contains(profile_text(profile), "kernels and operations are of clips"));
  profile.music->tokens = 1503;
  profile.music->traced_tokens = most_traced_tokens;
  EXPECT_TRUE(contains(profile_text(profile),
                       "kernels and operations are of clips of 512 tokens instead of 1503"));
}

TEST(ProfileGenerate, KeepsNothingAndRefusesWhatCannotBe) {
  const size_t before = left_behind();
  MusicProfileTask task = music_task(simulate_devices(1));
  profile_generation(task, short_music_profile());
  EXPECT_EQ(left_behind(), before);
  EXPECT_EQ(thrown_by([&] { profile_generation(task, {.steps = 0}); }).sentence,
            "a profile of 0 batches was asked for; expected at least 1");
  task.music.new_tokens = 0;
  EXPECT_FALSE(
      thrown_by([&] { profile_generation(task, short_music_profile()); }).sentence.empty());
  EXPECT_EQ(left_behind(), before);
}

TEST(ProfileGenerate, ObservedBatchesSoundTheSame) {
  LogicalDevice& device = *simulate_devices(1)[0];
  const MusicProfileTask task = music_task({&device});
  const auto engine = make_music_engine(task.model, device, task.engine);
  std::vector<at::Tensor> sounds;
  MusicRecorder recorder(device, Clock::now(), 1, 1);
  for (const bool observed : {false, true}) {
    engine->observe(observed ? &recorder : nullptr);
    if (observed) recorder.begin_step(0);
    engine->generate({task.request(4)}, task.music,
                     [&](size_t, MusicClip clip) { sounds.push_back(clip.sound); });
    engine->finish();
    if (observed) recorder.end_step();
  }
  ASSERT_EQ(sounds.size(), 2U);
  EXPECT_TRUE(at::equal(sounds[0], sounds[1]));
  EXPECT_EQ(recorder.take().front().parts.size(), 7U);
}

}  // namespace tandem::tests
