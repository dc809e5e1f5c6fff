#include "train/batches/decoder_batches.h"

#include <gtest/gtest.h>

#include "audio/signal/resample.h"
#include "models/xtts_narrow.h"
#include "train/batches_corpus.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

constexpr int output_rate = 24000;
const GptBatchOptions slices{.shortest_slice = 0.5, .longest_slice = 1.5, .seed = 3};

// The clip at the decoder's rate, straight from the rate of its file.
at::Tensor sound_alone(const SpeechFeed& speech, int64_t clip) {
  SpeechOptions options = speech.batches.options();
  options.sample_rate = output_rate;
  return read_clip(speech.corpus.index(), clip, options).samples[0];
}

double cosine(const at::Tensor& a, const at::Tensor& b) {
  return ((a * b).sum() / (a.norm() * b.norm())).item<double>();
}

}  // namespace

TEST(DecoderBatches, AddTheSoundFromTheFilesOwnRateAndTheSpeaker) {
  const SpeakerEncoder speaker = narrow_speaker_encoder();
  const SpeechFolder folder(14, {44100, 22050, 16000});
  const DataConfig config = SpeechFolder::settings();
  SpeechFeed speech(folder.index, config, voice_feed(config, output_rate));
  DecoderBatches batches(speech, narrow_dvae_encoder(), speaker, output_rate, slices);
  GptBatches gpt(speech, narrow_dvae_encoder(), slices);
  const std::vector<int64_t> largest = batches.largest_fields();
  int64_t rows = 0;
  for (int64_t index = 0; index < 2 * speech.order.batches_an_epoch(); ++index) {
    const Batch batch = made_batch(batches, index), of_gpt = made_batch(gpt, index);
    ASSERT_EQ(batch.fields.size(), size_t{decoder_fields});
    for (size_t field = 0; field < batch.fields.size(); ++field)
      EXPECT_LE(batch.fields[field].numel(), largest[field]) << field;
    for (size_t field = 0; field < gpt_fields; ++field)
      EXPECT_TRUE(at::equal(batch.fields[field], of_gpt.fields[field])) << field;
    const at::Tensor waves = batch.fields[decoder_waves];
    const at::Tensor speakers = batch.fields[decoder_speakers];
    for (int64_t row = 0; row < waves.size(0); ++row) {
      const int64_t samples = number(batch.fields[decoder_wave_lengths][row]);
      EXPECT_EQ(waves[row].slice(0, samples).abs().sum().item<float>(), 0);
      if (row >= batch.rows) {
        EXPECT_EQ(samples, 0);
        EXPECT_EQ(speakers[row].abs().sum().item<float>(), 0);
        continue;
      }
      ++rows;
      const at::Tensor alone = sound_alone(speech, batch.clips[static_cast<size_t>(row)]);
      ASSERT_EQ(samples, alone.size(0));
      EXPECT_TRUE(at::equal(waves[row].narrow(0, 0, samples), alone));
      // The steps of make_voice, on whole multiples of 64 frames.
      Waves clip = clip_alone(speech, batch, row);
      clip.samples = clip.samples.clamp(-1, 1);
      const at::Tensor mels = log_mel(resample(clip, 16000), mel_speaker_encoder());
      const int64_t frames = mels.size(2) < 64 ? mels.size(2) : mels.size(2) / 64 * 64;
      const at::Tensor expected = speaker(mels.narrow(2, 0, frames))[0];
      EXPECT_LT((speakers[row] - expected).abs().max().item<float>(), 1e-5);
      EXPECT_NEAR(speakers[row].norm().item<float>(), 1, 1e-5);
    }
  }
  EXPECT_EQ(rows, 2 * 14) << "computed in the first epoch, remembered in the second";
}

TEST(DecoderBatches, TrimAndScaleTheSoundAsTheCodesSoundIs) {
  const SpeakerEncoder speaker = narrow_speaker_encoder();
  const DemoSpeech demo({"agent-alreadyon", "im-sorry", "vm-mailboxfull"});
  DataConfig config = SpeechFolder::settings();
  config.trim_top_db = 35;
  config.target_loudness_lufs = -20;
  SpeechFeed speech(demo.index, config, voice_feed(config, output_rate));
  DecoderBatches batches(speech, narrow_dvae_encoder(), speaker, output_rate, slices);
  bool trimmed = false;
  for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index) {
    const Batch batch = made_batch(batches, index);
    for (int64_t row = 0; row < batch.rows; ++row) {
      const Waves clip = clip_alone(speech, batch, row);  // trimmed and scaled at 22.05 kHz
      const Waves expected = resample(clip, output_rate);
      const int64_t samples = number(batch.fields[decoder_wave_lengths][row]);
      trimmed = trimmed || clip.lengths[0] < 0.98 * speech.corpus.index()[row].seconds() * 22050;
      ASSERT_LE(std::abs(samples - expected.lengths[0]), 1);
      const int64_t common = std::min(samples, expected.lengths[0]);
      // Up to a sample of shift: what was cut off begins on a sample of either rate.
      EXPECT_GT(cosine(batch.fields[decoder_waves][row].narrow(0, 0, common),
                       expected.samples[0].narrow(0, 0, common)),
                0.97);
      EXPECT_NEAR(batch.fields[decoder_waves][row].norm().item<double>() /
                      expected.samples.norm().item<double>(),
                  1, 0.01);
    }
  }
  EXPECT_TRUE(trimmed) << "else this test proves nothing";
}

TEST(DecoderBatches, RefuseAFeedOfAnotherRate) {
  const SpeakerEncoder speaker = narrow_speaker_encoder();
  const SpeechFolder folder(4);
  const DataConfig config = SpeechFolder::settings();
  SpeechFeed speech(folder.index, config, voice_feed(config, 22050));
  const Thrown thrown = thrown_by(
      [&] { DecoderBatches(speech, narrow_dvae_encoder(), speaker, output_rate, slices); });
  EXPECT_EQ(thrown.kind, "internal");
  EXPECT_TRUE(contains(thrown.sentence, "at 24000 Hz, its feed gives sound at 22050 Hz"))
      << thrown.sentence;
}

}  // namespace tandem::tests
