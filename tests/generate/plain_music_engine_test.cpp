#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "device/registry.h"
#include "device/simulated.h"
#include "generate/music_engine.h"
#include "generate/music_windows.h"
#include "models/musicgen/music_sound.h"
#include "models/musicgen_tokens.h"
#include "support/captured.h"

namespace tandem {
namespace {

LogicalDevice& cpu() { return DeviceRegistry::get().cpu(); }

// Captions of 1 to 9 ids, all different.
MusicRequest clip_number(int number) {
  MusicRequest request;
  for (int i = 0; i < number % 9; ++i) request.text_ids.push_back(3 + (7 * number + 5 * i) % 90);
  request.text_ids.push_back(1);
  request.seed = static_cast<uint64_t>(1000 + number);
  return request;
}

std::vector<MusicRequest> clips(int count) {
  std::vector<MusicRequest> batch;
  for (int i = 0; i < count; ++i) batch.push_back(clip_number(i));
  return batch;
}

// In the order of the requests.
std::vector<MusicClip> generate_all(MusicEngine& engine, const std::vector<MusicRequest>& requests,
                                    const MusicOptions& options, size_t batch_size) {
  std::vector<MusicClip> made(requests.size());
  std::vector<int> handed(requests.size());
  std::mutex mutex;
  for (size_t first = 0; first < requests.size(); first += batch_size) {
    const size_t last = std::min(first + batch_size, requests.size());
    engine.generate({requests.begin() + static_cast<std::ptrdiff_t>(first),
                     requests.begin() + static_cast<std::ptrdiff_t>(last)},
                    options, [&, first](size_t index, MusicClip clip) {
                      std::lock_guard lock(mutex);
                      made[first + index] = std::move(clip);
                      ++handed[first + index];
                    });
  }
  engine.finish();
  for (const int times : handed) EXPECT_EQ(times, 1);
  return made;
}

std::vector<MusicClip> generate_all(const std::string& model, LogicalDevice& device,
                                    const std::vector<MusicRequest>& requests,
                                    const MusicOptions& options, size_t batch_size,
                                    const MusicEngineOptions& engine_options = {}) {
  const auto engine = make_plain_music_engine(tests::small_musicgen(model), device, engine_options);
  return generate_all(*engine, requests, options, batch_size);
}

void expect_same(const std::vector<MusicClip>& ours, const std::vector<MusicClip>& expected) {
  ASSERT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(at::equal(ours[i].codes, expected[i].codes)) << "codes of clip " << i;
    EXPECT_TRUE(at::equal(ours[i].sound, expected[i].sound)) << "sound of clip " << i;
  }
}

const MusicOptions short_clips{.new_tokens = 20};

std::string refusal(const std::function<void()>& work, ErrorKind kind) {
  const Error error = error_of(work);
  EXPECT_EQ(error.kind(), kind) << error.what();
  return error.what();
}

}  // namespace

TEST(PlainMusicEngine, BatchSizeAndOrderChangeNoSample) {
  for (const std::string model : {"tiny", "stereo"}) {
    const std::vector<MusicRequest> requests = clips(7);
    const auto alone = generate_all(model, cpu(), requests, short_clips, 1);
    EXPECT_FALSE(at::equal(alone[0].codes, alone[1].codes));
    for (const size_t batch : {3, 7})
      expect_same(generate_all(model, cpu(), requests, short_clips, batch), alone);
    std::vector<MusicRequest> turned(requests.rbegin(), requests.rend());
    auto backwards = generate_all(model, cpu(), turned, short_clips, 3);
    std::reverse(backwards.begin(), backwards.end());
    expect_same(backwards, alone);
  }
}

TEST(PlainMusicEngine, SeedsDecideUnlessGreedy) {
  std::vector<MusicRequest> requests = {clip_number(4), clip_number(4), clip_number(4)};
  requests[2].seed = 5;
  MusicOptions options = short_clips;
  const auto drawn = generate_all("tiny", cpu(), requests, options, 3);
  EXPECT_TRUE(at::equal(drawn[0].codes, drawn[1].codes));
  EXPECT_FALSE(at::equal(drawn[0].codes, drawn[2].codes));
  options.sampling.greedy = true;
  const auto likeliest = generate_all("tiny", cpu(), requests, options, 3);
  EXPECT_TRUE(at::equal(likeliest[0].codes, likeliest[2].codes));
}

TEST(PlainMusicEngine, MakesTheTokensOfTransformers) {
  for (const std::string model : {"tiny", "odd", "stereo"}) {
    std::vector<MusicRequest> requests(3);
    const at::Tensor ids = tests::generated(model + "/text_ids"),
                     mask = tests::generated(model + "/text_mask");
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < mask[i].sum().item<int64_t>(); ++j)
        requests[static_cast<size_t>(i)].text_ids.push_back(ids[i][j].item<int64_t>());
    MusicOptions options{.sampling = {.greedy = true}, .new_tokens = 40};
    const auto made = generate_all(model, cpu(), requests, options, 3);
    const at::Tensor expected = tests::generated(model + "/greedy40/codes");
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_TRUE(at::equal(made[static_cast<size_t>(i)].codes, expected[i])) << model << " " << i;
  }
}

TEST(PlainMusicEngine, LengthsAreThoseOfTheDelayPattern) {
  const Musicgen& model = tests::small_musicgen("tiny");
  for (const auto& [tokens, frames] :
       std::vector<std::pair<int64_t, int64_t>>{{5, 5}, {6, 3}, {203, 200}}) {
    const auto made = generate_all("tiny", cpu(), clips(1), {.new_tokens = tokens}, 1);
    EXPECT_EQ(made[0].codes.size(1), frames);
    EXPECT_EQ(made[0].sound.sizes(), (at::IntArrayRef{1, frames * model.config.codec.hop()}));
  }
}

TEST(PlainMusicEngine, EvenCodebooksOfStereoAreTheLeft) {
  const Musicgen& model = tests::small_musicgen("stereo");
  const MusicClip clip = generate_all("stereo", cpu(), clips(1), short_clips, 1)[0];
  ASSERT_EQ(clip.sound.size(0), 2);
  for (int64_t side = 0; side < 2; ++side) {
    const at::Tensor codes = clip.codes.slice(0, side, {}, 2).unsqueeze(0);
    EXPECT_TRUE(at::equal(model.codec.decode(codes)[0][0], clip.sound[side])) << side;
  }
  EXPECT_FALSE(at::equal(clip.sound[0], clip.sound[1]));
}

TEST(PlainMusicEngine, ComputingEverythingAgainGivesTheSame) {
  expect_same(generate_all("tiny", cpu(), clips(3), short_clips, 3, {.use_cache = false}),
              generate_all("tiny", cpu(), clips(3), short_clips, 3));
}

TEST(PlainMusicEngine, GoesOnFromAPromptAndKeepsIt) {
  std::vector<MusicRequest> requests = clips(3);
  for (size_t i = 0; i < requests.size(); ++i)
    requests[i].prompt =
        at::arange(4 * 6, at::kLong).add(static_cast<int64_t>(i)).view({4, 6}) % 32;
  const auto made = generate_all("tiny", cpu(), requests, short_clips, 3);
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(made[i].codes.size(1), 6 + 20 - 3);
    EXPECT_TRUE(at::equal(made[i].codes.narrow(1, 0, 6), requests[i].prompt)) << i;
  }
  expect_same(generate_all("tiny", cpu(), requests, short_clips, 1), made);
}

TEST(PlainMusicEngine, WindowsGoOnFromTheirLastFrames) {
  const MusicOptions options{.new_tokens = 60, .window_tokens = 30, .kept_tokens = 10};
  const MusicClip whole = generate_all("tiny", cpu(), clips(1), options, 1)[0];
  ASSERT_EQ(whole.codes.size(1), 57);
  // The first window is a short clip of its own.
  const MusicClip first = generate_all("tiny", cpu(), clips(1), {.new_tokens = 30}, 1)[0];
  EXPECT_TRUE(at::equal(whole.codes.narrow(1, 0, 27), first.codes));
  // The second reads its last ten frames, and its draws are counted on.
  const Musicgen& model = tests::small_musicgen("tiny");
  const MusicStepWeights weights = MusicStepWeights::make(model.decoder, at::kCPU);
  MusicDraws draws = MusicDraws::counted({clip_number(0).seed});
  MusicPass second(weights, tests::texts_of(model, {clip_number(0).text_ids}),
                   first.codes.narrow(1, 17, 10).unsqueeze(0), draws,
                   {.new_tokens = 20, .first_step = 30});
  tests::run_out(second);
  EXPECT_TRUE(at::equal(whole.codes.narrow(1, 17, 27), second.codes()[0]));
}

TEST(PlainMusicEngine, ClipsMayBeLongerThanTheModelsPositions) {
  const MusicOptions options{.new_tokens = 150, .kept_tokens = 20};  // of 60 positions
  const auto together = generate_all("odd", cpu(), clips(3), options, 3);
  EXPECT_EQ(together[0].codes.size(1), 148);
  expect_same(generate_all("odd", cpu(), clips(3), options, 1), together);
}

TEST(MusicWindows, CoverWhatOneLongWindowWould) {
  const MusicDecoderSize size{.positions = 2048};
  for (const int64_t tokens : {1504, 1600, 3003, 9000}) {
    for (const int64_t prompt : {0, 50, 700, 3000}) {
      const auto windows = music_windows(size, {.new_tokens = tokens}, prompt);
      int64_t known = prompt, steps = 0;
      for (const MusicWindow& window : windows) {
        EXPECT_LE(window.prompt_frames + window.new_tokens, 1503);
        EXPECT_EQ(window.first_frame + window.prompt_frames, known);
        EXPECT_LE(window.prompt_frames, 600);
        EXPECT_EQ(window.first_step, steps);
        steps += window.new_tokens;
        known = window.first_frame + window.frames;
      }
      EXPECT_EQ(known, prompt + tokens - 3) << tokens << " " << prompt;
    }
  }
  EXPECT_EQ(music_windows(size, {.new_tokens = 1503}, 0).size(), 1u);
  EXPECT_EQ(music_windows(size, {.new_tokens = 3000, .window_tokens = 9000}, 0).front().new_tokens,
            2047);
}

TEST(MusicWindows, RefuseWhatLeavesNoRoom) {
  const MusicDecoderSize size{};
  const auto complaint = [&](const MusicOptions& options, int64_t prompt = 0) {
    return refusal([&] { music_windows(size, options, prompt); }, ErrorKind::config);
  };
  EXPECT_EQ(complaint({.new_tokens = 0}), "0 new tokens; expected 1 or more");
  EXPECT_EQ(complaint({.new_tokens = 3000, .window_tokens = 500}),
            "kept_tokens is 600; windows of 500 tokens can keep 4 to 496");
  EXPECT_EQ(complaint({.new_tokens = 3000, .kept_tokens = 3}),
            "kept_tokens is 3; windows of 1503 tokens can keep 4 to 1499");
  EXPECT_EQ(complaint({.new_tokens = 3}, 2000),
            "3 new tokens add no frame to a prompt of 2000; expected more than 3");
}

TEST(PlainMusicEngine, SimulatedDevicesDoTheirOwnWorkAndGiveTheSameBytes) {
  const std::vector<LogicalDevice*> devices = simulate_devices(2);
  const auto expected = generate_all("tiny", cpu(), clips(4), short_clips, 4);
  for (LogicalDevice* device : devices) {
    const auto before = cpu().operations().total();
    const auto engine = make_music_engine(tests::small_musicgen("tiny"), *device);
    expect_same(generate_all(*engine, clips(4), short_clips, 2), expected);
    EXPECT_GT(device->operations().total(), 1000u);
    EXPECT_EQ(cpu().operations().total(), before);
  }
}

TEST(PlainMusicEngine, OutOfMemoryHandsOverNothingAndLeavesTheEngineFit) {
  LogicalDevice& device = *simulate_devices(1)[0];
  const auto engine = make_plain_music_engine(tests::small_musicgen("tiny"), device, {});
  const auto expected = generate_all(*engine, clips(4), short_clips, 2);
  device.memory().set_limit(device.memory().used() + 60'000);  // keys and values of 4 need more
  int handed = 0;
  const auto count = [&](size_t, MusicClip) { ++handed; };
  EXPECT_NE(
      refusal([&] { engine->generate(clips(4), {.new_tokens = 200}, count); }, ErrorKind::memory),
      "");
  engine->finish();
  EXPECT_EQ(handed, 0);
  device.memory().set_limit(0);
  expect_same(generate_all(*engine, clips(4), short_clips, 4), expected);
}

TEST(PlainMusicEngine, WaitsForTheMemoryOfOpenSound) {
  LogicalDevice& device = *simulate_devices(1)[0];
  const auto engine = make_plain_music_engine(tests::small_musicgen("tiny"), device, {});
  const uint64_t held = 12'000'000;
  device.memory().set_limit(device.memory().used() + held + 300'000);
  std::promise<void> holds;
  engine->generate(clips(1), short_clips, [&](size_t, MusicClip) {
    DeviceScope scope(device);
    const at::Tensor memory = at::zeros({static_cast<int64_t>(held)}, at::kByte);
    holds.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
  });
  holds.get_future().wait();
  // Keys and values of these alone take more than what is left.
  EXPECT_EQ(generate_all(*engine, clips(4), {.new_tokens = 200}, 4)[3].codes.size(1), 197);
}

TEST(PlainMusicEngine, SoundThatCannotFitIsTheDevicesFailure) {
  LogicalDevice& device = *simulate_devices(1)[0];
  const auto engine = make_plain_music_engine(tests::small_musicgen("tiny"), device, {});
  const MusicOptions options{.sampling = {.guidance_scale = 1}, .new_tokens = 900};
  device.memory().set_limit(device.memory().used() + 900 * 32 * 2 * 2 * 4 + 150'000);
  engine->generate(clips(1), options, [](size_t, MusicClip) { ADD_FAILURE() << "handed over"; });
  const std::string why = refusal([&] { engine->finish(); }, ErrorKind::device);
  EXPECT_NE(why.find("/GPU:0 cannot hold the sound of one clip of 897 frames"), std::string::npos)
      << why;
  device.memory().set_limit(0);
  EXPECT_EQ(generate_all(*engine, clips(1), short_clips, 1)[0].codes.size(1), 17);
}

TEST(PlainMusicEngine, WhatDoneThrowsComesWithTheNextCall) {
  const auto engine = make_plain_music_engine(tests::small_musicgen("tiny"), cpu(), {});
  std::vector<size_t> handed;
  engine->generate(clips(3), short_clips, [&](size_t index, MusicClip) {
    handed.push_back(index);
    if (index == 1) throw Error(ErrorKind::io, "the disk is full");
  });
  EXPECT_EQ(refusal([&] { engine->finish(); }, ErrorKind::io), "the disk is full");
  EXPECT_EQ(handed.size(), 3u);
  EXPECT_EQ(generate_all(*engine, clips(2), short_clips, 2).size(), 2u);
}

TEST(PlainMusicEngine, ItsEndWaitsForTheSound) {
  int handed = 0;
  make_plain_music_engine(tests::small_musicgen("tiny"), cpu(), {})
      ->generate(clips(3), short_clips, [&](size_t, MusicClip) { ++handed; });
  EXPECT_EQ(handed, 3);
}

TEST(PlainMusicEngine, CountsWhatItDid) {
  const auto engine = make_plain_music_engine(tests::small_musicgen("tiny"), cpu(), {});
  engine->generate({}, short_clips, {});  // nothing to do
  generate_all(*engine, clips(5), short_clips, 2);
  const MusicCounters counters = engine->counters();
  EXPECT_EQ(counters.batches, 3u);
  EXPECT_EQ(counters.clips, 5u);
  EXPECT_EQ(counters.steps, 60u);
  EXPECT_EQ(counters.captures, 0u);
  EXPECT_GT(counters.decode_seconds, 0);
  EXPECT_GT(counters.sound_seconds, 0);
}

TEST(PlainMusicEngine, RefusesWhatItCannotDo) {
  const Musicgen& model = tests::small_musicgen("tiny");
  const auto making = [&](const MusicEngineOptions& options) {
    return refusal([&] { make_plain_music_engine(model, cpu(), options); }, ErrorKind::config);
  };
  EXPECT_EQ(making({.precision = "fp16"}),
            "precision `fp16` needs a GPU of compute capability 8.0 or more; elsewhere sound is "
            "made in fp32");
  EXPECT_EQ(making({.cache = "int8"}),
            "a cache in `int8` goes with half precision, on a GPU of compute capability 8.0 or "
            "more; expected `same`");
}

TEST(PlainMusicEngine, RefusesRequestsWithASentenceAndWorksOn) {
  const auto engine = make_plain_music_engine(tests::small_musicgen("tiny"), cpu(), {});
  const auto complaint = [&](auto change, ErrorKind kind, MusicOptions options = short_clips) {
    std::vector<MusicRequest> batch = clips(2);
    change(batch, options);
    return refusal(
        [&] {
          engine->generate(batch, options,
                           [](size_t, MusicClip) { ADD_FAILURE() << "handed over"; });
        },
        kind);
  };
  EXPECT_EQ(complaint(
                [](auto& batch, auto&) {
                  batch[1].text_ids = {4, 112};
                },
                ErrorKind::data),
            "the caption of clip 1 has the id 112; the text encoder knows 0 to 111");
  EXPECT_EQ(
      complaint([](auto& batch, auto&) { batch[0].text_ids.assign(300, 1); }, ErrorKind::data),
      "the caption of clip 0 has 300 ids; expected at most 256");
  EXPECT_EQ(complaint(
                [](auto& batch, auto&) {
                  batch[0].prompt = at::zeros({4, 3}, at::kLong);
                },
                ErrorKind::data),
            "the prompt of clip 1 has 0 frames, that of clip 0 3; prompts of a batch are of one "
            "length");
  EXPECT_EQ(
      complaint([](auto&, auto& options) { options.sampling.temperature = -1; }, ErrorKind::config),
      "temperature is -1; expected a number above 0");
  EXPECT_EQ(complaint([](auto&, auto& options) { options.new_tokens = 5000; }, ErrorKind::config,
                      {.window_tokens = 100}),
            "kept_tokens is 600; windows of 100 tokens can keep 4 to 96");
  EXPECT_EQ(generate_all(*engine, clips(2), short_clips, 2).size(), 2u);
}

TEST(MusicMemory, TheByteModelHoldsWhatThePlainEngineTakes) {
  LogicalDevice& device = *simulate_devices(1)[0];
  Musicgen model = Musicgen::make("tiny", 5);
  const MusicOptions options{.new_tokens = 400, .longest_text = 10};
  const uint64_t before = device.memory().used();
  const auto engine = make_plain_music_engine(model, device, {});
  const uint64_t weights = device.memory().used() - before;
  generate_all(*engine, clips(16), options, 16);
  const auto taken = static_cast<int64_t>(device.memory().peak() - before - weights);
  const MusicMemory memory = music_memory(model.config, {.precision = "fp32"}, options, 16);
  EXPECT_GE(memory.weights, static_cast<int64_t>(weights));
  EXPECT_GE(memory.cache + memory.work + memory.sound, taken);
  EXPECT_LE(memory.cache + memory.work + memory.sound, taken * 5 / 4);
}

TEST(MusicMemory, FollowsTheFormulasOfThePublishedModels) {
  const MusicOptions options{.new_tokens = 1503, .longest_text = 128};
  const auto of = [&](const char* size, int64_t clips_at_once, const char* cache = "same") {
    return music_memory(Musicgen::config_of(size), {.precision = "fp16", .cache = cache}, options,
                        clips_at_once);
  };
  // Keys and values of 2 * 32 rows of small: 98,304 bytes a token and row, and the captions'.
  EXPECT_EQ(of("small", 32).cache, 98'304LL * (64 * 1503 + 32 * 128));
  EXPECT_EQ(of("large", 32).cache, 393'216LL * (64 * 1503 + 32 * 128));
  EXPECT_LT(of("large", 32, "int8").cache, of("large", 32).cache * 56 / 100);
  EXPECT_EQ(of("small", 1).weights, of("small", 128).weights);
  // 360.7 M read a step, 50.3 M for the captions' keys and values, in half; the rest in float32.
  EXPECT_NEAR(static_cast<double>(of("small", 1).weights),
              2 * (360.7e6 + 50.3e6) + 4 * (109.6e6 + 28.5e6 + 8.4e6 + 2.1e6 + 0.9e6), 12e6);
  EXPECT_LT(of("small", 64).total(), 30LL << 30);
  EXPECT_GT(of("large", 128).total(), 141'000'000'000LL);  // more than an H200 has
}

}  // namespace tandem
