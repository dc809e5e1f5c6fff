#include <gtest/gtest.h>

#include <set>

#include "data/feed/feature_cache.h"
#include "models/xtts/code_cache.h"
#include "train/batches_corpus.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

const GptBatchOptions short_slices{.shortest_slice = 0.5, .longest_slice = 1.5, .seed = 3};

DataConfig settings(int64_t batch_size = 8) {
  DataConfig config = SpeechFolder::settings();
  config.batch_size = batch_size;
  return config;
}

// Codes of the clip by the encoder itself; one code too many where the clip ends on a code's edge.
at::Tensor codes_alone(const SpeechFeed& speech, const Batch& batch, int64_t row) {
  const Waves clip = clip_alone(speech, batch, row);
  const at::Tensor codes = narrow_dvae_encoder().codes(log_mel(clip, mel_xtts_dvae()))[0];
  return codes.narrow(0, 0, (clip.lengths[0] + 1023) / 1024);
}

void expect_codes_of_the_clips(const SpeechFeed& speech, const Batch& batch) {
  for (int64_t row = 0; row < batch.rows; ++row) {
    const at::Tensor expected = codes_alone(speech, batch, row);
    const int64_t count = number(batch.fields[gpt_code_lengths][row]);
    ASSERT_EQ(count, expected.size(0));
    const at::Tensor codes = batch.fields[gpt_codes][row];
    EXPECT_TRUE(at::equal(codes.narrow(0, 0, count), expected)) << "row " << row;
    EXPECT_EQ(number(codes.slice(0, count).abs().sum()), 0);
  }
}

void expect_equal(const Batch& got, const Batch& expected) {
  EXPECT_EQ(got.clips, expected.clips);
  EXPECT_EQ(got.sizes, expected.sizes);
  ASSERT_EQ(got.fields.size(), expected.fields.size());
  for (size_t field = 0; field < got.fields.size(); ++field)
    EXPECT_TRUE(at::equal(got.fields[field], expected.fields[field])) << "field " << field;
}

}  // namespace

TEST(GptBatches, GiveEachClipTheCodesItHasAlone) {
  const DemoSpeech demo;
  const DataConfig config = settings();
  SpeechFeed speech(demo.index, config, voice_feed(config));
  GptBatches batches(speech, narrow_dvae_encoder(), short_slices);
  bool filling_up_would_differ = false;
  for (const int64_t index : {0, 3, 7}) {
    const Batch batch = made_batch(batches, index);
    expect_codes_of_the_clips(speech, batch);
    const at::Tensor plain =
        narrow_dvae_encoder().codes(made_batch(speech.batches, index).fields[speech_mels]);
    for (int64_t row = 0; row < batch.rows; ++row) {
      const int64_t count = number(batch.fields[gpt_code_lengths][row]);
      filling_up_would_differ =
          filling_up_would_differ || !at::equal(plain[row].narrow(0, 0, count),
                                                batch.fields[gpt_codes][row].narrow(0, 0, count));
    }
  }
  EXPECT_TRUE(filling_up_would_differ) << "else this test proves nothing";
}

TEST(GptBatches, HaveFieldsOfOneShapeForABucketAndZerosBeyondTheLengths) {
  const SpeechFolder folder(21);
  const DataConfig config = settings();
  SpeechFeed speech(folder.index, config, voice_feed(config));
  GptBatches batches(speech, narrow_dvae_encoder(), short_slices);
  const std::vector<int64_t> largest = batches.largest_fields();
  std::map<int64_t, std::vector<std::vector<int64_t>>> shapes;  // by width of the codes
  bool saw_empty = false;
  for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index) {
    const Batch batch = made_batch(batches, index);
    ASSERT_EQ(batch.fields.size(), size_t{gpt_fields});
    std::vector<std::vector<int64_t>> shape;
    for (size_t field = 0; field < batch.fields.size(); ++field) {
      EXPECT_LE(batch.fields[field].numel(), largest[field]) << field;
      EXPECT_EQ(batch.fields[field].size(0), 8);
      shape.push_back(batch.fields[field].sizes().vec());
    }
    const auto [found, fresh] = shapes.try_emplace(batch.fields[gpt_codes].size(1), shape);
    EXPECT_EQ(found->second, shape);
    ASSERT_EQ(batch.sizes.size(), static_cast<size_t>(batch.rows));
    for (int64_t row = 0; row < 8; ++row) {
      const auto length = [&](GptField field) { return number(batch.fields[field][row]); };
      const int64_t text = length(gpt_text_lengths), codes = length(gpt_code_lengths),
                    frames = length(gpt_conditioning_lengths);
      EXPECT_EQ(number(batch.fields[gpt_text][row].slice(0, text).abs().sum()), 0);
      EXPECT_EQ(number(batch.fields[gpt_codes][row].slice(0, codes).abs().sum()), 0);
      const at::Tensor mels = batch.fields[gpt_conditioning][row];
      EXPECT_EQ(mels.slice(1, frames).abs().sum().item<float>(), 0);
      if (row < batch.rows) {
        const std::vector<int32_t> ids = speech.corpus.ids(batch.clips[static_cast<size_t>(row)]);
        ASSERT_EQ(text, static_cast<int64_t>(ids.size()));
        EXPECT_EQ(number(batch.fields[gpt_text][row][text - 1]), ids.back());
        EXPECT_GT(mels.narrow(1, frames - 1, 1).abs().sum().item<float>(), 0);
        EXPECT_EQ(batch.sizes[static_cast<size_t>(row)], text + 2 + codes + 5);
      } else {
        saw_empty = true;
        EXPECT_EQ(text + codes + frames, 0);
        EXPECT_EQ(number(batch.fields[gpt_slice][row].sum()), 0);
      }
    }
  }
  EXPECT_GT(shapes.size(), 1u);
  EXPECT_TRUE(saw_empty) << "21 clips in batches of 8 leave empty rows";
}

TEST(GptBatches, CountWhatTheWholeBatchTeaches) {
  const SpeechFolder folder(21);
  const DataConfig config = settings();
  SpeechFeed speech(folder.index, config, voice_feed(config));
  for (const bool masks : {true, false}) {
    GptBatchOptions options = short_slices;
    options.masks_slice = masks;
    GptBatches batches(speech, narrow_dvae_encoder(), options);
    for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index) {
      const Batch batch = made_batch(batches, index);
      double text = 0, audio = 0;
      for (int64_t row = 0; row < batch.rows; ++row) {
        const auto samples = clip_alone(speech, batch, row).lengths[0];
        const VoiceSlice slice =
            draw_voice_slice(samples, {.shortest = 11025, .longest = 33075, .seed = 3},
                             static_cast<uint64_t>(batch.clips[static_cast<size_t>(row)]), 0);
        const int64_t first = number(batch.fields[gpt_slice][row][0]),
                      end = number(batch.fields[gpt_slice][row][1]);
        if (masks) {
          EXPECT_EQ(first, slice.start / 1024);
          EXPECT_EQ(end, (slice.end() + 1023) / 1024);
          EXPECT_LE(end, number(batch.fields[gpt_code_lengths][row]));
        } else {
          EXPECT_EQ(first, end);
        }
        text += static_cast<double>(number(batch.fields[gpt_text_lengths][row]) + 1);
        audio +=
            static_cast<double>(number(batch.fields[gpt_code_lengths][row]) + 4 - (end - first));
      }
      for (int64_t row = 0; row < 8; ++row) {
        EXPECT_EQ(batch.fields[gpt_whole][row][0].item<float>(), text);
        EXPECT_EQ(batch.fields[gpt_whole][row][1].item<float>(), audio);
      }
    }
  }
}

TEST(GptBatches, CountNothingOfAClipWithoutText) {
  const SpeechFolder folder(3);
  std::vector<Clip> clips = folder.clips();
  clips[1].text = "";
  clips[1].tokens = 0;
  DataConfig config = settings(3);
  config.buckets = 1;
  SpeechFeed speech(SpeechCorpus(ClipIndex::from(std::move(clips), "/"), nullptr, {}), config,
                    voice_feed(config));
  GptBatchOptions options = short_slices;
  options.masks_slice = false;
  GptBatches batches(speech, narrow_dvae_encoder(), options);
  const Batch batch = made_batch(batches, 0);
  double text = 0, audio = 0;
  for (int64_t row = 0; row < 3; ++row) {
    const bool silent = batch.clips[static_cast<size_t>(row)] == 1;
    EXPECT_EQ(number(batch.fields[gpt_text_lengths][row]) == 0, silent);
    EXPECT_EQ(batch.sizes[static_cast<size_t>(row)] == 0, silent);
    if (silent) continue;
    text += static_cast<double>(number(batch.fields[gpt_text_lengths][row]) + 1);
    audio += static_cast<double>(number(batch.fields[gpt_code_lengths][row]) + 4);
  }
  EXPECT_EQ(batch.fields[gpt_whole][0][0].item<float>(), text);
  EXPECT_EQ(batch.fields[gpt_whole][0][1].item<float>(), audio);
}

TEST(GptBatches, CutTheMelsOfTheSliceThatWasDrawn) {
  const DemoSpeech demo({"agent-alreadyon", "im-sorry", "queue-youarenext", "vm-mailboxfull"});
  const DataConfig config = settings(4);
  SpeechFeed speech(demo.index, config, voice_feed(config));
  for (const bool validation : {false, true}) {
    const GptBatchOptions options{.validation = validation, .seed = 3};
    GptBatches batches(speech, narrow_dvae_encoder(), options);
    for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index) {
      const Batch batch = made_batch(batches, index);
      for (int64_t row = 0; row < batch.rows; ++row) {
        const Waves clip = clip_alone(speech, batch, row);
        const VoiceSlice slice = draw_voice_slice(
            clip.lengths[0], {.shortest = 66150, .longest = 132300, .fixed = validation, .seed = 3},
            static_cast<uint64_t>(batch.clips[static_cast<size_t>(row)]), 0);
        const Waves part{
            clip.samples.narrow(1, slice.start, slice.length).clone(), {slice.length}, 22050};
        const at::Tensor expected =
            log_mel(part, mel_xtts_conditioning(), -1, narrow_dvae_encoder().mel_stats)[0];
        const int64_t frames = number(batch.fields[gpt_conditioning_lengths][row]);
        ASSERT_EQ(frames, expected.size(1));
        EXPECT_TRUE(at::equal(batch.fields[gpt_conditioning][row].narrow(1, 0, frames), expected));
      }
    }
  }
}

TEST(GptBatches, AreTheSameWhateverTheReplicasTheThreadsAndWhereTheyBegin) {
  const SpeechFolder folder(21);
  DataConfig config = settings(6);
  SpeechFeed speech(folder.index, config, voice_feed(config));
  LogicalDevice& cpu = DeviceRegistry::get().cpu();
  GptBatchOptions other_voices = short_slices;
  other_voices.other_clip = true;
  GptBatches plain(speech, narrow_dvae_encoder(), other_voices);
  for (const int variant : {0, 1, 2, 3}) {
    GptBatches batches(speech, narrow_dvae_encoder(), other_voices);
    config.num_workers = variant == 1 ? 5 : 1;
    const int replicas = variant == 2 ? 4 : variant == 3 ? 2 : 1;
    FeedOptions options = feed_options(config);
    options.first_batch = variant == 0 ? 0 : 3;
    options.end_batch = 7;
    Feed feed(batches, cpu, std::vector<LogicalDevice*>(static_cast<size_t>(replicas), &cpu),
              options);
    for (int64_t index = options.first_batch; index < options.end_batch; ++index) {
      Batch whole{.index = index};
      std::vector<std::vector<at::Tensor>> parts(gpt_fields);
      for (int rank = 0; rank < replicas; ++rank) {
        const auto part = feed.next(rank);
        ASSERT_TRUE(part);
        for (size_t field = 0; field < parts.size(); ++field)
          parts[field].push_back((*part)->fields[field].clone());
        whole.clips.insert(whole.clips.end(), (*part)->clips.begin(), (*part)->clips.end());
        whole.sizes.insert(whole.sizes.end(), (*part)->sizes.begin(), (*part)->sizes.end());
      }
      for (const auto& part : parts) whole.fields.push_back(at::cat(part));
      expect_equal(whole, made_batch(plain, index));
    }
  }
}

TEST(GptBatches, ReplaceClipsThatBroke) {
  const SpeechFolder folder(21);
  const DataConfig config = settings();
  std::filesystem::remove(folder.path(4));
  put(folder.path(9), "no sound at all");
  SpeechFeedOptions options = voice_feed(config);
  options.bad_list = folder.bad_list();
  SpeechFeed speech(folder.index, config, options);
  GptBatches batches(speech, narrow_dvae_encoder(), short_slices);
  for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index) {
    const Batch batch = made_batch(batches, index);
    expect_codes_of_the_clips(speech, batch);
    for (const int64_t clip : batch.clips)
      EXPECT_NE(speech.corpus.index()[clip].id, SpeechFolder::name(4));
  }
  EXPECT_EQ(speech.bad.by_reason(),
            (std::map<std::string, int64_t>{{"changed", 1}, {"missing", 1}}));
}

TEST(GptBatches, EncodeAClipOnceAndGiveTheSameCodesFromThen) {
  const SpeechFolder folder(12);
  const DataConfig config = settings(5);
  SpeechFeed speech(folder.index, config, voice_feed(config));
  GptBatches batches(speech, narrow_dvae_encoder(), short_slices);
  const int64_t epoch = speech.order.batches_an_epoch();
  for (int64_t index = 0; index < epoch; ++index) made_batch(batches, index);
  EXPECT_EQ(batches.codes().encoded(), epoch);
  for (int64_t index = epoch; index < 3 * epoch; ++index) {
    const Batch batch = made_batch(batches, index);
    expect_codes_of_the_clips(speech, batch);
  }
  EXPECT_EQ(batches.codes().encoded(), epoch) << "no clip went through the DVAE again";
}

TEST(GptBatches, TakeCodesFromTheCacheOfTheSameDvaeOnly) {
  const SpeechFolder folder(12);
  const DataConfig config = settings(5);
  const SpeechOptions sound = voice_sound(config, 1);
  const std::string path = code_cache_path(folder.index);
  SpeechFeed speech(folder.index, config, voice_feed(config));
  GptBatches computed(speech, narrow_dvae_encoder(), short_slices);
  EXPECT_FALSE(computed.codes().cached());
  cache_codes(speech.corpus.index(), sound, narrow_dvae_encoder(), path, 1, {});
  {
    GptBatches cached(speech, narrow_dvae_encoder(), short_slices);
    ASSERT_TRUE(cached.codes().cached());
    for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index)
      expect_equal(made_batch(cached, index), made_batch(computed, index));
    EXPECT_EQ(cached.codes().encoded(), 0);
  }
  DvaeEncoder other = narrow_dvae_encoder();
  other.codebook = other.codebook + 0.5;
  EXPECT_FALSE(GptBatches(speech, other, short_slices).codes().cached());
  GptBatchOptions coqui = short_slices;
  coqui.like_coqui = true;
  EXPECT_FALSE(GptBatches(speech, narrow_dvae_encoder(), coqui).codes().cached());

  // A number that is not the one that was written: that clip is computed.
  std::string bytes = contents(path);
  bytes[bytes.size() - 30] = static_cast<char>(bytes[bytes.size() - 30] ^ 0x40);
  put(path, bytes);
  GptBatches damaged(speech, narrow_dvae_encoder(), short_slices);
  if (damaged.codes().cached()) {
    for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index)
      expect_equal(made_batch(damaged, index), made_batch(computed, index));
  }
  EXPECT_TRUE(damaged.codes().cached()) << "the damage must be one that only reading shows";
  put(path, "no cache at all");
  EXPECT_FALSE(GptBatches(speech, narrow_dvae_encoder(), short_slices).codes().cached());
}

TEST(GptBatches, RefuseADvaeOfOtherCodesAndAFeedWithoutWaves) {
  const SpeechFolder folder(4);
  const DataConfig config = settings();
  SpeechFeed speech(folder.index, config, voice_feed(config)), mels(folder.index, config, 1, "");
  GptBatchOptions options = short_slices;
  options.code_stride = 512;
  const Thrown other = thrown_by([&] { GptBatches(speech, narrow_dvae_encoder(), options); });
  EXPECT_EQ(other.kind, "config");
  EXPECT_TRUE(contains(other.sentence, "codes are of 1024 samples, the model's of 512"))
      << other.sentence;
  EXPECT_EQ(thrown_by([&] { GptBatches(mels, narrow_dvae_encoder(), short_slices); }).kind,
            "internal");
}

TEST(VoiceSlices, LieInsideTheClipAndAreOthersEachEpoch) {
  const VoiceSliceOptions options{.shortest = 3000, .longest = 6000, .seed = 9};
  std::set<int64_t> starts, lengths;
  for (uint64_t epoch = 0; epoch < 400; ++epoch) {
    const VoiceSlice slice = draw_voice_slice(7000, options, 5, epoch);
    EXPECT_GE(slice.start, 0);
    EXPECT_LE(slice.end(), 7000);
    EXPECT_GE(slice.length, 3000);
    EXPECT_LE(slice.length, 6000);
    starts.insert(slice.start);
    lengths.insert(slice.length);
    const VoiceSlice half = draw_voice_slice(2001, options, 5, epoch);
    EXPECT_EQ(half.length, 1000);
    EXPECT_LE(half.end(), 2001);
    const VoiceSlice either = draw_voice_slice(4000, options, 5, epoch);
    EXPECT_TRUE(either.length == 2000 || (either.length >= 3000 && either.length <= 4000));
    EXPECT_LE(either.length, longest_voice_slice(4000, options));
  }
  EXPECT_GT(starts.size(), 300u);
  EXPECT_LT(*lengths.begin(), 3100);
  EXPECT_GT(*lengths.rbegin(), 5900);
  EXPECT_EQ(draw_voice_slice(1, options, 5, 0).length, 1);
  EXPECT_EQ(draw_voice_slice(0, options, 5, 0).length, 0);
  const VoiceSliceOptions fixed{.shortest = 3000, .longest = 6000, .fixed = true};
  EXPECT_EQ(draw_voice_slice(9000, fixed, 5, 3).end(), 4500);
  EXPECT_EQ(longest_voice_slice(2001, options), 1000);
}

}  // namespace tandem::tests
