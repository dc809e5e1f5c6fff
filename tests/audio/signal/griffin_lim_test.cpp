#include "audio/signal/griffin_lim.h"

#include <gtest/gtest.h>

#include "audio/file/audio_file.h"
#include "audio/signal/clips.h"
#include "audio/signal/resample.h"
#include "tandem/error.h"

namespace tandem::tests {
namespace {

at::Tensor magnitudes_of(const at::Tensor& wave, const MelOptions& mel) {
  const at::Tensor window = at::hann_window(mel.window_length, at::kFloat);
  return at::stft(wave, mel.n_fft, mel.hop, mel.window_length, window, true, "reflect", false, true,
                  true)
      .abs();
}

// |A - B| over |A|: 0 is perfect, phases at random give about 0.8.
double convergence(const at::Tensor& found, const at::Tensor& wanted) {
  return ((found - wanted).norm() / wanted.norm()).item<double>();
}

// A second of a voice of the demo's.
at::Tensor spoken() {
  const auto file = open_audio({TANDEM_SOURCE_DIR "/assets/demo/wavs/conf-now-muted.flac"}, {});
  const AudioInfo& info = file->info();
  const at::Tensor wave = at::empty({1, info.frames});
  file->read_mono(0, info.frames, wave.mutable_data_ptr<float>());
  const Waves waves{wave, {info.frames}, info.sample_rate};
  return resample(waves, 22050).samples[0].slice(0, 0, 22050).contiguous();
}

at::Tensor mels_of(const at::Tensor& wave, const MelOptions& mel) {
  return log_mel({wave.unsqueeze(0), {wave.size(0)}, mel.sample_rate}, mel)[0];
}

}  // namespace

TEST(GriffinLim, FindsPhasesOfASpectrum) {
  const MelOptions mel = mel_xtts_dvae();
  const at::Tensor wave = spoken(), wanted = magnitudes_of(wave, mel);
  const at::Tensor found = wave_of_spectrum(wanted, mel);
  EXPECT_EQ(found.size(0), (wanted.size(1) - 1) * mel.hop);
  EXPECT_LT(convergence(magnitudes_of(found, mel), wanted), 0.15);
  const at::Tensor none = wave_of_spectrum(wanted, mel, {.iterations = 0});
  EXPECT_GT(convergence(magnitudes_of(none, mel), wanted), 0.4);
}

TEST(GriffinLim, GivesTheMelsItWasGivenBack) {
  for (const MelOptions& mel : {mel_xtts_dvae(), mel_default()}) {
    const at::Tensor mels = mels_of(spoken(), mel);
    const at::Tensor spectrum = spectrum_of_mels(mels, mel);
    EXPECT_GE(spectrum.min().item<double>(), 0);
    const at::Tensor again =
        at::matmul(mel_filters(mel).t(), mel.power == 2 ? spectrum.square() : spectrum);
    EXPECT_LT(convergence(again, mels.exp()), 0.02);
    const at::Tensor sound = griffin_lim(mels, mel);
    const at::Tensor heard = mels_of(sound, mel).slice(1, 0, mels.size(1));
    EXPECT_LT((heard - mels).abs().mean().item<double>(), 0.5) << "of logarithms";
    EXPECT_LT(convergence(heard.exp(), mels.exp()), 0.25);
  }
}

TEST(GriffinLim, IsTheSameEveryTimeAndAnotherWithAnotherSeed) {
  const MelOptions mel = mel_xtts_dvae();
  const at::Tensor mels = mels_of(clip(8000, 22050), mel);
  const at::Tensor sound = griffin_lim(mels, mel, {.iterations = 3});
  EXPECT_TRUE(at::equal(sound, griffin_lim(mels, mel, {.iterations = 3})));
  EXPECT_FALSE(at::equal(sound, griffin_lim(mels, mel, {.iterations = 3, .seed = 1})));
}

TEST(GriffinLim, OfHardlyAnyFramesIsSilence) {
  const MelOptions mel = mel_xtts_dvae();
  EXPECT_EQ(griffin_lim(at::zeros({80, 0}), mel).size(0), 0);
  EXPECT_EQ(griffin_lim(at::zeros({80, 1}), mel).size(0), 0);
  EXPECT_EQ(griffin_lim(at::zeros({80, 3}), mel).abs().sum().item<double>(), 0);
  EXPECT_GT(griffin_lim(at::zeros({80, 4}), mel).abs().sum().item<double>(), 0);
}

TEST(GriffinLim, RefusesMelsThatCannotBeUndone) {
  try {
    griffin_lim(at::zeros({64, 9}), mel_speaker_encoder());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_STREQ(error.what(),
                 "no sound can be made of mels that were standardised or pre-emphasised");
  }
}

}  // namespace tandem::tests
