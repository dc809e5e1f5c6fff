// Batches as coqui-tts makes them, against its own (tests/parity/make_batches_fixture.py).
#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "train/batches_corpus.h"

namespace tandem::tests {
namespace {

const std::string fixture = TANDEM_SOURCE_DIR "/tests/train/fixtures/batches.safetensors";

struct CoquiCase {
  explicit CoquiCase(bool validation)
      : demo({"agent-alreadyon", "im-sorry", "vm-mailboxfull"}),
        speech(demo.index, settings(), options(settings())),
        batches(speech, narrow_dvae_encoder(),
                {.like_coqui = true, .validation = validation, .seed = 5}) {}
  static DataConfig settings() {
    DataConfig config = SpeechFolder::settings();
    config.batch_size = 4;  // one row stays empty
    config.buckets = 1;
    return config;
  }
  static SpeechFeedOptions options(const DataConfig& config) {
    SpeechFeedOptions feed = voice_feed(config);
    feed.shuffle = false;
    return feed;
  }
  DemoSpeech demo;
  SpeechFeed speech;
  GptBatches batches;
};

}  // namespace

TEST(GptBatchesLikeCoqui, HaveItsConditioningItsCodesAndItsTargets) {
  auto expected = read_safetensors(fixture).tensors;
  for (const bool validation : {false, true}) {
    const std::string kind = validation ? "validation." : "training.";
    CoquiCase made(validation);
    const Batch batch = made_batch(made.batches, 0);
    ASSERT_EQ(batch.rows, 3);
    const int64_t frames = number(expected.at(kind + "frames")[0]);
    const at::Tensor conditioning = batch.fields[gpt_conditioning];
    ASSERT_EQ(conditioning.size(2), frames) << "6 s, whatever the slice";
    const at::Tensor some = conditioning.narrow(0, 0, 3).slice(1, 0, 80, 8).slice(2, 0, frames, 16);
    EXPECT_LT((some - expected.at(kind + "conditioning")).abs().max().item<float>(), 2e-4);

    const at::Tensor targets = expected.at(kind + "targets").to(at::kLong);
    double learned = 0;
    for (int64_t row = 0; row < 3; ++row) {
      const int64_t samples = number(expected.at(kind + "wav_lengths")[row]);
      const VoiceSlice slice = draw_voice_slice(
          samples, {.shortest = 66150, .longest = 132300, .fixed = validation, .seed = 5},
          static_cast<uint64_t>(row), 0);
      ASSERT_EQ(slice.start, number(expected.at(kind + "slices")[row][0]));
      ASSERT_EQ(slice.end(), number(expected.at(kind + "slices")[row][1]));
      EXPECT_EQ(number(batch.fields[gpt_conditioning_lengths][row]), frames);
      const int64_t count = number(batch.fields[gpt_code_lengths][row]);
      ASSERT_EQ(count, (samples + 1023) / 1024);
      const at::Tensor codes = batch.fields[gpt_codes][row].narrow(0, 0, count);
      EXPECT_TRUE(
          at::equal(codes, expected.at(kind + "codes")[row].narrow(0, 0, count).to(at::kLong)));

      // What a learner asks for: codes and stops, none within gpt_slice.
      at::Tensor asked = at::full({targets.size(1)}, -1, at::kLong);
      asked.narrow(0, 0, count).copy_(codes);
      asked.narrow(0, count, stop_targets).fill_(65);
      const int64_t first = number(batch.fields[gpt_slice][row][0]),
                    end = number(batch.fields[gpt_slice][row][1]);
      asked.slice(0, first, std::max(first, end)).fill_(-1);
      EXPECT_TRUE(at::equal(asked, targets[row])) << kind << " row " << row;
      learned += static_cast<double>(number((asked >= 0).sum()));
    }
    EXPECT_EQ(batch.fields[gpt_whole][0][1].item<float>(), learned);
    EXPECT_EQ(number(batch.fields[gpt_slice].narrow(0, 0, 2).sum()), 0) << "only the last row";
    EXPECT_EQ(number(batch.fields[gpt_code_lengths][3]), 0);
    EXPECT_EQ(conditioning[3].abs().sum().item<float>(), 0);
  }
}

TEST(GptBatchesLikeCoqui, OfWhichNothingIsLearnedStillHaveADivisor) {
  const DemoSpeech demo({"vm-mailboxfull"});
  DataConfig config = CoquiCase::settings();
  config.batch_size = 1;
  SpeechFeed speech(demo.index, config, CoquiCase::options(config));
  // coqui-tts divides by zero here: the slice begins within the first 256 samples.
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const VoiceSlice slice =
        draw_voice_slice(91376, {.shortest = 66150, .longest = 132300, .seed = seed}, 0, 0);
    if (slice.start >= 256) continue;
    GptBatches batches(speech, narrow_dvae_encoder(), {.like_coqui = true, .seed = seed});
    const Batch batch = made_batch(batches, 0);
    EXPECT_EQ(number(batch.fields[gpt_slice][0][0]), 0);
    EXPECT_GT(number(batch.fields[gpt_slice][0][1]), number(batch.fields[gpt_code_lengths][0]) + 4);
    EXPECT_EQ(batch.fields[gpt_whole][0][1].item<float>(), 1);
    return;
  }
  FAIL() << "no seed begins in the first frame";
}

}  // namespace tandem::tests
