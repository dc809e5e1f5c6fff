#include "audio/signal/trim.h"

#include "audio/signal/clips.h"
#include "support/captured.h"

namespace tandem::tests {
namespace {

// Quiet, sound, quiet.
at::Tensor framed(int64_t before, int64_t sound, int64_t after) {
  return at::cat({at::zeros({before}), clip(sound, 22050), 1e-4 * clip(after, 22050, 1)});
}
const TrimOptions options{.top_db = 40, .frame = 512, .hop = 128};

}  // namespace

TEST(Trim, CutsBothEndsToAHop) {
  const Trimmed out = trim_silence(batch_of({framed(5000, 4000, 3000)}, 22050), options);
  // Frames reach half their length over the sound.
  EXPECT_GE(out.starts[0], 5000 - 512);
  EXPECT_LE(out.starts[0], 5000);
  EXPECT_GE(out.starts[0] + out.waves.lengths[0], 9000);
  EXPECT_LE(out.starts[0] + out.waves.lengths[0], 9000 + 512);
  EXPECT_EQ(out.starts[0] % 128, 0);
  EXPECT_TRUE(out.silent.empty());
  EXPECT_TRUE(at::equal(
      row_of(out.waves, 0),
      framed(5000, 4000, 3000).slice(0, out.starts[0], out.starts[0] + out.waves.lengths[0])));
}

TEST(Trim, KeepsTheMargin) {
  TrimOptions wide = options;
  wide.margin = 700;
  const Waves waves = batch_of({framed(5000, 4000, 3000), framed(100, 4000, 50)}, 22050);
  const Trimmed narrow_out = trim_silence(waves, options), wide_out = trim_silence(waves, wide);
  EXPECT_EQ(wide_out.starts[0], narrow_out.starts[0] - 700);
  EXPECT_EQ(wide_out.waves.lengths[0], narrow_out.waves.lengths[0] + 1400);
  EXPECT_EQ(wide_out.starts[1], 0) << "no further than the clip reaches";
  EXPECT_EQ(wide_out.waves.lengths[1], 4150);
}

TEST(Trim, TheThresholdFollowsTheRowsOwnPeak) {
  const at::Tensor wave = framed(5000, 4000, 3000);
  const Trimmed out = trim_silence(batch_of({wave, wave * 0.01}, 22050), options);
  EXPECT_EQ(out.starts[0], out.starts[1]);
  EXPECT_EQ(out.waves.lengths[0], out.waves.lengths[1]);
}

TEST(Trim, SilenceIsNamedAndHasNoLength) {
  const Waves waves = batch_of(
      {at::zeros({3000}), framed(10, 500, 10), at::zeros({0}), at::full({2000}, 1e-6)}, 22050);
  const Trimmed out = trim_silence(waves, options);
  EXPECT_EQ(out.silent, (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(out.waves.lengths[0], 0);
  EXPECT_EQ(out.waves.lengths[1], 520);
  EXPECT_EQ(out.waves.sample_rate, 22050);
}

TEST(Trim, ARowIsWhatItIsAlone) {
  std::vector<at::Tensor> clips = ragged_clips(22050);
  clips.push_back(framed(2000, 1500, 2500));
  clips.push_back(at::zeros({500}));
  expect_rows_alone(clips, 22050,
                    [](const Waves& waves, size_t) { return trim_silence(waves, options).waves; });
}

TEST(Trim, RefusesOptionsThatMakeNoSense) {
  const Waves waves = batch_of({clip(100, 22050)}, 22050);
  const Error error =
      error_of([&] { trim_silence(waves, {.top_db = 20, .frame = 512, .hop = 0}); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_STREQ(
      error.what(),
      "silence cannot be trimmed with frames of 512, a hop of 0, a margin of 0 and 20 dB: a "
      "frame and hop of at least 1, no negative margin and more than 0 dB were expected");
  EXPECT_EQ(error_of([&] { trim_silence(waves, {.top_db = 0}); }).kind(), ErrorKind::config);
}

TEST(Trim, OneRowOfSilenceDoesNotKeepTheOthersWhole) {
  at::Tensor samples = at::zeros({3, 22050});
  samples[0].narrow(0, 8000, 6000) = at::arange(6000).mul(0.3).sin();
  const Waves waves{samples, {22050, 15000, 0}, 22050};
  const Waves alone = trim_silence({samples.narrow(0, 0, 1), {22050}, 22050}, {}).waves;
  const Waves ends = trim_ends(waves, {});
  EXPECT_LT(alone.lengths[0], 22050);
  EXPECT_EQ(ends.lengths, (std::vector<int64_t>{alone.lengths[0], 15000, 0}));
  EXPECT_TRUE(at::equal(ends.samples[0].narrow(0, 0, alone.lengths[0]),
                        alone.samples[0].narrow(0, 0, alone.lengths[0])));
}

}  // namespace tandem::tests
