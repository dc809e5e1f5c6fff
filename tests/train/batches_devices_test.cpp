// Batches are made on the data device, all of them, and only carried to the model's.
#include <gtest/gtest.h>

#include "device/simulated.h"
#include "models/xtts_narrow.h"
#include "train/batches/decoder_batches.h"
#include "train/batches/dvae_batches.h"
#include "train/batches_corpus.h"

namespace tandem::tests {
namespace {

const GptBatchOptions slices{.shortest_slice = 0.5, .longest_slice = 1.5, .seed = 3};

std::vector<Batch> through_a_feed(BatchMaker& maker, LogicalDevice& data, LogicalDevice& model,
                                  int64_t count) {
  const DataConfig config = SpeechFolder::settings();
  FeedOptions options = feed_options(config);
  options.end_batch = count;
  options.poison = true;
  Feed feed(maker, data, {&model}, options);
  std::vector<Batch> batches;
  while (const auto batch = feed.next(0)) {
    batches.push_back(**batch);
    for (at::Tensor& field : batches.back().fields) field = field.clone();
  }
  return batches;
}

}  // namespace

TEST(TrainingBatchesOnDevices, AreMadeOnTheDataDeviceAlone) {
  const auto devices = simulate_devices(2);
  const SpeechFolder folder(20, {16000});
  const DataConfig config = SpeechFolder::settings();
  const SpeakerEncoder speaker = narrow_speaker_encoder();
  SpeechFeed speech(folder.index, config, voice_feed(config, 24000));
  DecoderBatches decoder(speech, narrow_dvae_encoder(), speaker, 24000, slices);
  count_operations(true);
  constexpr int64_t count = 4;
  const std::vector<Batch> batches = through_a_feed(decoder, *devices[0], *devices[1], count);
  ASSERT_EQ(batches.size(), static_cast<size_t>(count));
  auto data = devices[0]->operations().by_name(), model = devices[1]->operations().by_name();
  EXPECT_EQ(data["tandem::log_mel"], static_cast<uint64_t>(count));
  EXPECT_EQ(data["tandem::voice_slices"], static_cast<uint64_t>(count));
  EXPECT_EQ(data["tandem::codes"], static_cast<uint64_t>(decoder.codes().encoded()));
  EXPECT_GT(data["tandem::codes"], 0u);
  EXPECT_EQ(data["tandem::speakers"], data["tandem::codes"]);
  EXPECT_GT(data["aten::_convolution"], 0u);
  EXPECT_EQ(model.count("aten::_convolution"), 0u);
  EXPECT_EQ(model["aten::copy_"], static_cast<uint64_t>(count * decoder_fields))
      << "the model's device takes each field once";
  for (const auto& [name, times] : model) EXPECT_FALSE(name.starts_with("tandem::")) << name;
  EXPECT_GT(devices[0]->memory().used(), 0u) << "the encoders live there";
}

TEST(TrainingBatchesOnDevices, AreThoseOfTheCpu) {
  const auto devices = simulate_devices(2);
  const SpeechFolder folder(10, {16000, 22050});
  const DataConfig config = SpeechFolder::settings();
  const SpeakerEncoder speaker = narrow_speaker_encoder();
  SpeechFeed speech(folder.index, config, voice_feed(config, 24000));
  DecoderBatches here(speech, narrow_dvae_encoder(), speaker, 24000, slices);
  DecoderBatches there(speech, narrow_dvae_encoder(), speaker, 24000, slices);
  DvaeBatches dvae(speech);
  const int64_t epoch = speech.order.batches_an_epoch();
  const auto compare = [&](BatchMaker& expected, BatchMaker& maker, int64_t count) {
    const std::vector<Batch> got = through_a_feed(maker, *devices[0], *devices[1], count);
    ASSERT_EQ(got.size(), static_cast<size_t>(count));
    for (int64_t index = 0; index < count; ++index) {
      const Batch batch = made_batch(expected, index);
      EXPECT_EQ(got[static_cast<size_t>(index)].clips, batch.clips);
      for (size_t field = 0; field < batch.fields.size(); ++field)
        EXPECT_TRUE(at::equal(got[static_cast<size_t>(index)].fields[field], batch.fields[field]))
            << "batch " << index << " field " << field;
    }
  };
  compare(here, there, epoch + 2);
  compare(dvae, dvae, epoch);
}

TEST(TrainingBatchesOnDevices, FollowTheDataDeviceToAnother) {
  const auto devices = simulate_devices(2);
  const SpeechFolder folder(10);
  const DataConfig config = SpeechFolder::settings();
  SpeechFeed speech(folder.index, config, voice_feed(config));
  GptBatches batches(speech, narrow_dvae_encoder(), slices);
  const std::vector<Batch> first = through_a_feed(batches, *devices[0], *devices[1], 2);
  count_operations(true);
  devices[0]->operations().reset();
  const std::vector<Batch> second = through_a_feed(batches, *devices[1], *devices[0], 2);
  EXPECT_GT(devices[1]->operations().by_name()["tandem::codes"], 0u);
  EXPECT_EQ(devices[0]->operations().by_name().count("tandem::codes"), 0u);
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_TRUE(at::equal(first[i].fields[gpt_codes], second[i].fields[gpt_codes]));
}

}  // namespace tandem::tests
