// MusicGen's engine on CUDA against the plain one on the CPU. Needs a GPU.
#include "generate/music_engine.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "device/logical_device.h"
#include "gpu/in_child.h"
#include "gpu/lively_music.h"
#include "models/musicgen/musicgen.h"
#include "tandem/error.h"

namespace tandem {

TEST(GpuMusicEngine, EngineAgreesWithThePlainOneAndWithItself) {
  IN_CHILD({
    LogicalDevice& device = music_gpu();
    at::NoGradGuard no_gradients;
    Musicgen model = Musicgen::make("tiny", 1);
    model.decoder = lively_decoder(model.config.decoder, model.config.text.width);
    const auto requests = [&](int64_t count) {
      std::vector<MusicRequest> batch;
      for (int64_t i = 0; i < count; ++i) {
        MusicRequest request{.seed = static_cast<uint64_t>(i)};
        for (int64_t t = 0; t < 3 + i % 5; ++t)
          request.text_ids.push_back((i * 3 + t) % model.config.text.vocabulary);
        batch.push_back(request);
      }
      return batch;
    };
    const auto clips_of = [](MusicEngine& engine, const std::vector<MusicRequest>& batch,
                             const MusicOptions& options) {
      std::vector<MusicClip> clips(batch.size());
      engine.generate(batch, options,
                      [&](size_t index, MusicClip clip) { clips[index] = std::move(clip); });
      engine.finish();
      return clips;
    };
    MusicOptions options{.sampling = {.greedy = true}, .new_tokens = 40, .longest_text = 16};
    const auto half = make_music_engine(model, device);
    const auto plain = make_plain_music_engine(model, DeviceRegistry::get().cpu(), {});
    const auto ours = clips_of(*half, requests(8), options);
    const auto theirs = clips_of(*plain, requests(8), options);
    int64_t same = 0, all = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].codes.sizes(), theirs[i].codes.sizes());
      ASSERT_EQ(ours[i].sound.sizes(), theirs[i].sound.sizes());
      const at::Tensor equal = (ours[i].codes == theirs[i].codes).all(0).to(at::kLong).cumprod(0);
      same += equal.sum().item<int64_t>();
      all += equal.size(0);
      if (at::equal(ours[i].codes, theirs[i].codes)) {
        EXPECT_GT(decibel(ours[i].sound, theirs[i].sound), 40);
      }
    }
    std::printf("greedy fp16 and fp32 agree for %ld of %ld frames\n", static_cast<long>(same),
                static_cast<long>(all));
    EXPECT_GT(same, all / 4);
    EXPECT_EQ(half->counters().captures, 1u);
    EXPECT_EQ(half->counters().steps, 40u);

    options.sampling = {.top_p = 0.9, .top_k = 20};
    const auto together = clips_of(*half, requests(8), options);
    EXPECT_EQ(half->counters().captures, 1u);
    for (const int64_t alone : {1, 3}) {
      const auto fewer = clips_of(*half, requests(alone), options);
      for (size_t i = 0; i < fewer.size(); ++i) {
        EXPECT_TRUE(at::equal(fewer[i].codes, together[i].codes)) << alone;
        EXPECT_TRUE(at::equal(fewer[i].sound, together[i].sound)) << alone;
      }
    }
    // Windows: the same clip is longer, and begins as before.
    options.new_tokens = 100;
    options.window_tokens = 40;
    options.kept_tokens = 12;
    const auto longer = clips_of(*half, requests(2), options);
    EXPECT_EQ(longer[0].codes.size(1), 97);
    EXPECT_TRUE(at::equal(longer[1].codes.narrow(1, 0, 30), together[1].codes.narrow(1, 0, 30)));
    EXPECT_EQ(longer[0].sound.size(1), 97 * model.config.codec.hop());
  });
}

TEST(GpuMusicEngine, ABatchThatDoesNotFitLeavesTheEngineUsable) {
  IN_CHILD({
    LogicalDevice& device = music_gpu();
    const Musicgen model = Musicgen::make("tiny", 1);
    const auto engine = make_music_engine(model, device);
    const MusicOptions options{.new_tokens = 30, .longest_text = 8};
    const auto batch = [](size_t count) {
      return std::vector<MusicRequest>(count, {.text_ids = {3, 4, 1}});
    };
    const uint64_t before = device.memory().used();
    device.memory().set_limit(before + (64 << 20));
    try {
      engine->generate(batch(100'000), options, [](size_t, MusicClip) { FAIL(); });
      ADD_FAILURE() << "it fitted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::memory) << error.what();
    }
    device.memory().set_limit(0);
    int made = 0;
    engine->generate(batch(2), options, [&](size_t, MusicClip) { ++made; });
    engine->finish();
    EXPECT_EQ(made, 2);
    engine->generate(batch(1), options,
                     [](size_t, MusicClip) { throw std::runtime_error("full"); });
    EXPECT_THROW(engine->finish(), std::runtime_error);
    engine->finish();
  });
}

}  // namespace tandem
