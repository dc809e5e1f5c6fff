#include "train/batches/dvae_batches.h"

#include <gtest/gtest.h>

#include "data/feed/feature_cache.h"
#include "train/batches_corpus.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

SpeechFeedOptions mels_only(const DataConfig& config, bool on_host = false) {
  SpeechFeedOptions options = voice_feed(config);
  options.sound->waves = false;
  options.on_host = on_host;
  return options;
}

}  // namespace

TEST(DvaeBatches, HaveTheMelsOfEachClipInWholeCodes) {
  const SpeechFolder folder(21, {16000, 22050});
  const DataConfig config = SpeechFolder::settings();
  for (const bool on_host : {false, true}) {
    SpeechFeed speech(folder.index, config, mels_only(config, on_host));
    DvaeBatches batches(speech);
    const std::vector<int64_t> largest = batches.largest_fields();
    int64_t rows = 0;
    for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index) {
      const Batch batch = made_batch(batches, index);
      ASSERT_EQ(batch.fields.size(), size_t{dvae_fields});
      const at::Tensor mels = batch.fields[dvae_mels];
      EXPECT_EQ(mels.size(2) % 4, 0);
      int64_t sum = 0;
      for (int64_t row = 0; row < mels.size(0); ++row) {
        const int64_t frames = number(batch.fields[dvae_mel_lengths][row]);
        sum += frames;
        EXPECT_EQ(mels[row].slice(1, frames).abs().sum().item<float>(), 0);
        if (row >= batch.rows) {
          EXPECT_EQ(frames, 0);
          continue;
        }
        ++rows;
        const at::Tensor alone = log_mel(clip_alone(speech, batch, row), mel_xtts_dvae())[0];
        EXPECT_EQ(frames, alone.size(1) / 4 * 4);
        EXPECT_TRUE(at::equal(mels[row].narrow(1, 0, frames), alone.narrow(1, 0, frames)));
      }
      for (int64_t row = 0; row < mels.size(0); ++row)
        EXPECT_EQ(batch.fields[dvae_whole][row][0].item<float>(), static_cast<float>(sum));
      for (size_t field = 0; field < batch.fields.size(); ++field)
        EXPECT_LE(batch.fields[field].numel(), largest[field]);
    }
    EXPECT_EQ(rows, 21);
  }
}

TEST(MelStats, AreTheLargestMagnitudesOfTheClipsLookedAt) {
  const SpeechFolder folder(9);
  const DataConfig config = SpeechFolder::settings();
  SpeechFeed speech(folder.index, config, mels_only(config));
  const MelOptions mel = mel_xtts_dvae();
  const auto by_hand = [&](const std::vector<int64_t>& clips) {
    at::Tensor largest = at::zeros({80});
    for (const int64_t clip : clips) {
      const Waves waves = read_clip(speech.corpus.index(), clip, speech.batches.options());
      largest = at::maximum(largest, std::get<0>(log_mel(waves, mel)[0].abs().max(1)));
    }
    return largest;
  };
  EXPECT_TRUE(at::equal(measure_mel_stats(speech, mel), by_hand({0, 1, 2, 3, 4, 5, 6, 7, 8})));
  EXPECT_TRUE(at::equal(measure_mel_stats(speech, mel, 3), by_hand({0, 3, 6})));
  std::filesystem::remove(speech.corpus.index().full_path(3));
  EXPECT_TRUE(at::equal(measure_mel_stats(speech, mel, 3), by_hand({0, 6})));
  for (int i = 0; i < 9; ++i) std::filesystem::remove(folder.path(i));
  const Thrown thrown = thrown_by([&] { measure_mel_stats(speech, mel); });
  EXPECT_EQ(thrown.kind, "data");
  EXPECT_TRUE(contains(thrown.sentence, "none of the 9 clips")) << thrown.sentence;
}

}  // namespace tandem::tests
