#include "audio/signal/mel.h"

#include "audio/signal/clips.h"
#include "support/captured.h"

namespace tandem::tests {
namespace {

at::Tensor mels_of(const at::Tensor& wave, const MelOptions& options) {
  return log_mel(batch_of({wave}, options.sample_rate), options)[0];
}

}  // namespace

TEST(Mel, EveryFrontEndEqualsTorchaudio) {
  ASSERT_EQ(mel_names().size(), 5u);
  for (const std::string_view name : mel_names()) {
    const MelOptions options = *find_mel(name);
    const at::Tensor wave = clip(3001, options.sample_rate, 1);
    const at::Tensor expected = fixture("mel_" + std::string(name)).view({options.mels, -1});
    EXPECT_LE(difference(mels_of(wave, options), expected), options.standardise ? 5e-4 : 1e-4)
        << name;
  }
}

// The bits are those of the processor the fixture was made on: on others the last bit of MKL's
// exponentials may be another, which the filters' slopes make a few larger.
TEST(Mel, FiltersAreTorchaudios) {
  for (const std::string_view name : mel_names()) {
    const at::Tensor bank = mel_filters(*find_mel(name)).t();
    const at::Tensor ours = bank.masked_select(bank != 0),
                     theirs = fixture("filters_" + std::string(name));
    ASSERT_EQ(ours.numel(), theirs.numel()) << name;
    EXPECT_LE(difference(ours, theirs), 3e-5 * theirs.max().item<double>()) << name;
  }
}

TEST(Mel, ShortClipsAreReflectedAsOftenAsNeeded) {
  const at::Tensor expected = fixture("mel_default_short").view({80, -1});
  EXPECT_LE(difference(mels_of(clip(300, 22050, 2), mel_default()), expected), 1e-4);
  for (const int64_t samples : {1, 2, 3, 511, 512, 513})
    EXPECT_TRUE(at::isfinite(mels_of(clip(samples, 22050), mel_default())).all().item<bool>());
}

TEST(Mel, ARowIsWhatItIsAlone) {
  for (const std::string_view name : mel_names()) {
    const MelOptions options = *find_mel(name);
    const auto clips = ragged_clips(options.sample_rate);
    const Waves waves = batch_of(clips, options.sample_rate, 100);
    const at::Tensor together = log_mel(waves, options);
    for (size_t row = 0; row < clips.size(); ++row) {
      const at::Tensor alone = mels_of(clips[row], options);
      const int64_t frames = mel_frames(waves.lengths[row], options);
      ASSERT_EQ(alone.size(1), frames);
      const at::Tensor mine = together[static_cast<int64_t>(row)];
      EXPECT_TRUE(at::equal(mine.slice(1, 0, frames), alone)) << name << " row " << row;
      EXPECT_EQ(mine.slice(1, frames).count_nonzero().item<int64_t>(), 0) << name;
    }
  }
}

TEST(Mel, FramesAreCountedAsTorchaudioCounts) {
  EXPECT_EQ(mel_frames(0, mel_default()), 0);
  EXPECT_EQ(mel_frames(1, mel_default()), 1);
  EXPECT_EQ(mel_frames(255, mel_default()), 1);
  EXPECT_EQ(mel_frames(256, mel_default()), 2);
  EXPECT_EQ(mel_frames(132'300, mel_default()), 517);
}

TEST(Mel, AGivenNumberOfFramesCutsOrFillsUp) {
  for (const MelOptions& options : {mel_default(), mel_speaker_encoder()}) {
    const Waves waves = batch_of({clip(9000, options.sample_rate)}, options.sample_rate);
    const at::Tensor whole = log_mel(waves, options);
    const at::Tensor fewer = log_mel(waves, options, 20), more = log_mel(waves, options, 99);
    EXPECT_TRUE(at::equal(fewer, whole.slice(2, 0, 20)));
    EXPECT_TRUE(at::equal(more.slice(2, 0, whole.size(2)), whole));
    EXPECT_EQ(more.size(2), 99);
    EXPECT_EQ(more.slice(2, whole.size(2)).count_nonzero().item<int64_t>(), 0);
  }
}

TEST(Mel, StatsDivideTheLogarithms) {
  const Waves waves = batch_of({clip(5000, 22050)}, 22050);
  const at::Tensor stats = at::linspace(1, 5, 80);
  EXPECT_LE(difference(log_mel(waves, mel_xtts_dvae(), -1, stats),
                       log_mel(waves, mel_xtts_dvae()) / stats.view({1, 80, 1})),
            1e-6);
  const Error error = error_of([&] { log_mel(waves, mel_xtts_dvae(), -1, at::ones({64})); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_STREQ(error.what(), "mel_stats hold 64 values for 80 mels");
}

TEST(Mel, AClipByPointerIsTheRow) {
  const MelOptions options = mel_xtts_conditioning();
  const at::Tensor wave = clip(7000, 22050, 5);
  const int64_t frames = mel_frames(7000, options), stride = frames + 3;
  at::Tensor out = at::zeros({80, stride});
  log_mel_clip(wave.const_data_ptr<float>(), 7000, options, frames, out.mutable_data_ptr<float>(),
               stride);
  EXPECT_TRUE(at::equal(out.slice(1, 0, frames), mels_of(wave, options)));
  EXPECT_EQ(out.slice(1, frames).count_nonzero().item<int64_t>(), 0);
}

TEST(Mel, SilenceLiesOnTheFloor) {
  const at::Tensor quiet = mels_of(at::zeros({4000}), mel_default());
  EXPECT_TRUE(at::equal(quiet, at::full_like(quiet, std::log(1e-5f))));
}

TEST(Mel, NotANumberShows) {
  at::Tensor wave = clip(20'000, 22050);
  wave[10'000] = NAN;
  const at::Tensor mels = mels_of(wave, mel_default());
  EXPECT_TRUE(at::isnan(mels.select(1, 10'000 / 256)).all().item<bool>());
  EXPECT_TRUE(at::isfinite(mels.select(1, 0)).all().item<bool>());
}

TEST(Mel, FrontEndsAreFoundByName) {
  EXPECT_EQ(find_mel("xtts_conditioning"), mel_xtts_conditioning());
  EXPECT_EQ(find_mel("speaker_encoder")->hop, 160);
  EXPECT_EQ(find_mel("mfcc"), std::nullopt);
}

TEST(Mel, RefusesWavesOfAnotherRate) {
  const Error error = error_of([] { log_mel(batch_of({clip(9, 8000)}, 8000), mel_default()); });
  EXPECT_EQ(error.kind(), ErrorKind::internal);
  EXPECT_STREQ(error.what(), "log_mel was given waves at 8000 Hz for a front end of 22050 Hz");
}

TEST(Mel, RefusesOptionsThatMakeNoSense) {
  const auto sentence = [](const MelOptions& options) {
    const Error error = error_of([&] { mels_of(clip(100, 22050), options); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return std::string(error.what());
  };
  EXPECT_EQ(sentence({.n_fft = 1000}),
            "a mel front end cannot have n_fft 1000: a power of two from 16 to 65536 was expected");
  EXPECT_EQ(sentence({.hop = 0}),
            "a mel front end cannot have a hop of 0: 1 to n_fft (1024) was expected");
  EXPECT_EQ(sentence({.window_length = 1025}),
            "a mel front end cannot have a window of 1025: 1 to n_fft (1024) was expected");
  EXPECT_EQ(sentence({.mels = 0}), "a mel front end cannot have 0 mels: 1 to 1024 were expected");
  EXPECT_EQ(sentence({.f_min = 300, .f_max = 200}),
            "a mel front end cannot have 300 to 200 Hz: 0 <= f_min < f_max <= sample rate was "
            "expected");
  EXPECT_EQ(sentence({.power = 3}), "a mel front end cannot have power 3: 1 or 2 was expected");
  EXPECT_EQ(
      sentence({.clamp = 0}),
      "a mel front end cannot have neither `clamp` nor `add`: silence would be minus infinity");
}

}  // namespace tandem::tests
