// Whose slice tells the voice of a row.
#include <gtest/gtest.h>

#include "train/batches_corpus.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

const GptBatchOptions own_slices{.shortest_slice = 0.5, .longest_slice = 1.5, .seed = 3};

GptBatchOptions other_slices(bool validation = false) {
  GptBatchOptions options = own_slices;
  options.validation = validation;
  options.other_clip = true;
  return options;
}

DataConfig one_bucket(int64_t batch_size) {
  DataConfig config = SpeechFolder::settings();
  config.batch_size = batch_size;
  config.buckets = 1;
  return config;
}

// The folder's clips with these speakers, one after the other.
SpeechCorpus spoken_by(const SpeechFolder& folder, const std::vector<std::string>& speakers) {
  std::vector<Clip> clips = folder.clips();
  for (size_t row = 0; row < clips.size(); ++row)
    clips[row].speaker = speakers[row % speakers.size()];
  return SpeechCorpus(ClipIndex::from(std::move(clips), "/"), nullptr, {});
}

// That each row has the voice of `from` and a mask only where that is itself.
void expect_voices(const Batch& batch, const Batch& own, const std::vector<size_t>& from) {
  ASSERT_EQ(batch.clips, own.clips);
  double taught = 0;
  for (int64_t row = 0; row < batch.fields[gpt_codes].size(0); ++row) {
    const bool filled = row < batch.rows;
    const int64_t other = filled ? static_cast<int64_t>(from[static_cast<size_t>(row)]) : row;
    for (const GptField field : {gpt_conditioning, gpt_conditioning_lengths})
      EXPECT_TRUE(at::equal(batch.fields[field][row], own.fields[field][other])) << row;
    const at::Tensor slice = batch.fields[gpt_slice][row];
    if (other == row) {
      EXPECT_TRUE(at::equal(slice, own.fields[gpt_slice][row])) << row;
    } else {
      EXPECT_EQ(number(slice.abs().sum()), 0) << row;
    }
    if (filled)
      taught += static_cast<double>(number(batch.fields[gpt_code_lengths][row]) + 4 -
                                    number(slice[1]) + number(slice[0]));
  }
  EXPECT_EQ(batch.fields[gpt_whole][0][1].item<float>(), taught);
  for (const GptField field : {gpt_text, gpt_text_lengths, gpt_codes, gpt_code_lengths})
    EXPECT_TRUE(at::equal(batch.fields[field], own.fields[field]));
}

}  // namespace

TEST(VoiceRows, GoRoundAmongTheClipsOfASpeaker) {
  using Rows = std::vector<size_t>;
  EXPECT_EQ(voice_rows({7, 8, 9}, {"a", "a", "a"}), (Rows{1, 2, 0}));
  EXPECT_EQ(voice_rows({1, 2, 3, 4, 5}, {"a", "b", "a", "c", "b"}), (Rows{2, 4, 0, 3, 1}));
  EXPECT_EQ(voice_rows({1, 2}, {"", ""}), (Rows{0, 1}))
      << "nobody's clips have no speaker to share";
  EXPECT_EQ(voice_rows({6, 6, 7}, {"a", "a", "a"}), (Rows{2, 2, 0})) << "a clip twice is one clip";
  EXPECT_EQ(voice_rows({6, 6}, {"a", "a"}), (Rows{0, 1}));
  EXPECT_EQ(voice_rows({6}, {"a"}), (Rows{0}));
  EXPECT_TRUE(voice_rows({}, {}).empty());
}

TEST(VoiceRows, MaskNothingWhereAnotherClipTellsTheVoice) {
  const SpeechFolder folder(13);
  const DataConfig config = one_bucket(6);
  SpeechFeed speech(folder.index, config, voice_feed(config));
  ASSERT_TRUE(speech.corpus.index()[0].speaker.empty()) << "a corpus that names nobody";
  for (const bool validation : {false, true}) {
    GptBatchOptions options = own_slices;
    options.validation = validation;
    GptBatches own(speech, narrow_dvae_encoder(), options);
    GptBatches others(speech, narrow_dvae_encoder(), other_slices(validation));
    for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index) {
      const Batch batch = made_batch(others, index);
      std::vector<size_t> from;
      for (int64_t row = 0; row < batch.rows; ++row)
        from.push_back(static_cast<size_t>((row + 1) % batch.rows));
      if (batch.rows == 1) from = {0};
      expect_voices(batch, made_batch(own, index), from);
    }
  }
}

TEST(VoiceRows, StayWithTheSpeakerWhereTheCorpusNamesSome) {
  const SpeechFolder folder(12);
  const DataConfig config = one_bucket(5);
  SpeechFeed speech(spoken_by(folder, {"ann", "bob", "ann", ""}), config, voice_feed(config));
  GptBatches own(speech, narrow_dvae_encoder(), own_slices);
  GptBatches others(speech, narrow_dvae_encoder(), other_slices());
  int64_t alone = 0, shared = 0;
  for (int64_t index = 0; index < 2 * speech.order.batches_an_epoch(); ++index) {
    const Batch batch = made_batch(others, index);
    std::vector<std::string_view> speakers;
    for (const int64_t clip : batch.clips) speakers.push_back(speech.corpus.index()[clip].speaker);
    const std::vector<size_t> from = voice_rows(batch.clips, speakers);
    for (size_t row = 0; row < from.size(); ++row) {
      EXPECT_EQ(speakers[from[row]], speakers[row]);
      from[row] == row ? ++alone : ++shared;
    }
    expect_voices(batch, made_batch(own, index), from);
  }
  EXPECT_GT(alone, 0);
  EXPECT_GT(shared, 0);
}

}  // namespace tandem::tests
