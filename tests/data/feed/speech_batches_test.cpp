#include "data/feed/speech_batches.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "audio/signal/resample.h"
#include "data/feed/feed.h"
#include "data/feed/feature_cache.h"
#include "data/feed/speech_corpus_folder.h"
#include "device/simulated.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

LogicalDevice& cpu() { return DeviceRegistry::get().cpu(); }

// Every batch of the first epoch, copied.
std::vector<Batch> epoch_of(SpeechFeed& speech, const DataConfig& config) {
  FeedOptions options = feed_options(config);
  options.end_batch = speech.order.batches_an_epoch();
  Feed feed(speech.batches, cpu(), {&cpu()}, options);
  std::vector<Batch> batches;
  while (const auto batch = feed.next(0)) {
    batches.push_back(**batch);
    for (at::Tensor& field : batches.back().fields) field = field.clone();
  }
  return batches;
}

at::Tensor mels_alone(const ClipIndex& index, int64_t row) {
  const auto file = open_audio({.path = index.full_path(row)});
  std::vector<float> samples(static_cast<size_t>(file->info().frames));
  file->read_mono(0, file->info().frames, samples.data());
  const auto count = static_cast<int64_t>(samples.size());
  const Waves waves = resample(
      {at::from_blob(samples.data(), {1, count}).clone(), {count}, file->info().sample_rate},
      22050);
  return log_mel(waves, mel_default())[0];
}

void expect_right(const Batch& batch, const SpeechFeed& speech) {
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t clip = batch.clips[static_cast<size_t>(row)];
    const at::Tensor expected = mels_alone(speech.corpus.index(), clip);
    const int64_t frames = batch.fields[speech_mel_lengths][row].item<int64_t>();
    ASSERT_EQ(frames, expected.size(1));
    EXPECT_TRUE(at::equal(batch.fields[speech_mels][row].narrow(1, 0, frames), expected));
    const std::vector<int32_t> ids = speech.corpus.ids(clip);
    const int64_t length = batch.fields[speech_token_lengths][row].item<int64_t>();
    ASSERT_EQ(length, static_cast<int64_t>(ids.size()));
    for (int64_t i = 0; i < length; ++i)
      EXPECT_EQ(batch.fields[speech_tokens][row][i].item<int64_t>(), ids[static_cast<size_t>(i)]);
  }
  for (int64_t row = batch.rows; row < batch.fields[speech_mels].size(0); ++row) {
    EXPECT_EQ(batch.fields[speech_mel_lengths][row].item<int64_t>(), 0);
    EXPECT_EQ(batch.fields[speech_mels][row].abs().sum().item<float>(), 0);
  }
}

}  // namespace

TEST(SpeechBatches, AnEpochHasEveryClipOnceWithTheMelsOfTheClipAlone) {
  for (const std::vector<int>& rates : {std::vector{22050}, std::vector{16000, 22050, 44100}}) {
    const SpeechFolder folder(40, rates);
    const DataConfig config = SpeechFolder::settings();
    SpeechFeed speech(folder.index, config, 1, folder.bad_list());
    std::multiset<int64_t> clips;
    for (const Batch& batch : epoch_of(speech, config)) {
      expect_right(batch, speech);
      clips.insert(batch.clips.begin(), batch.clips.end());
    }
    EXPECT_EQ(clips.size(), 40u);
    EXPECT_EQ(std::set(clips.begin(), clips.end()).size(), 40u);
    EXPECT_EQ(speech.batches.native_reads(), 40);
    EXPECT_FALSE(std::filesystem::exists(folder.bad_list()));
  }
}

TEST(SpeechBatches, AreTheSameWhateverTheThreadsAndTheReader) {
  const SpeechFolder folder;
  DataConfig config = SpeechFolder::settings();
  SpeechFeed speech(folder.index, config, 1, "");
  const std::vector<Batch> expected = epoch_of(speech, config);
  for (const int variant : {0, 1, 2}) {
    DataConfig other = config;
    other.num_workers = variant == 0 ? 1 : 7;
    other.enhanced_gpu_prefetch = variant != 1;
    other.use_native_loading = variant != 2;
    SpeechFeed again(folder.index, other, 1, "");
    const std::vector<Batch> got = epoch_of(again, other);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].clips, expected[i].clips);
      for (size_t field = 0; field < got[i].fields.size(); ++field)
        EXPECT_TRUE(at::equal(got[i].fields[field], expected[i].fields[field])) << field;
    }
    EXPECT_EQ(again.batches.general_reads(), variant == 2 ? 40 : 0);
  }
}

TEST(SpeechBatches, AreTheSameWhenHostThreadsMakeTheMels) {
  const SpeechFolder folder(40, {16000, 22050});
  DataConfig config = SpeechFolder::settings();
  for (const bool shaped : {false, true}) {
    if (shaped) {
      config.trim_top_db = 40;
      config.target_loudness_lufs = -23;
    }
    SpeechFeed device(folder.index, config, 1, ""), host(folder.index, config, 1, "", true);
    const std::vector<Batch> expected = epoch_of(device, config), got = epoch_of(host, config);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].clips, expected[i].clips);
      for (size_t field = 0; field < got[i].fields.size(); ++field)
        EXPECT_TRUE(at::equal(got[i].fields[field], expected[i].fields[field])) << field;
    }
  }
}

TEST(SpeechBatches, ClipsThatBrokeAfterIndexingAreReplacedCountedAndListed) {
  const SpeechFolder folder;
  const DataConfig config = SpeechFolder::settings();
  std::filesystem::remove(folder.path(3));
  put(folder.path(5), "");
  std::filesystem::resize_file(folder.path(8), 1000);
  put(folder.path(11), "no sound at all");
  std::filesystem::remove(folder.path(14));
  std::filesystem::create_directory(folder.path(14));
  SpeechFeed speech(folder.index, config, 1, folder.bad_list());
  int64_t rows = 0;
  for (const Batch& batch : epoch_of(speech, config)) {
    expect_right(batch, speech);
    rows += batch.rows;
  }
  EXPECT_EQ(rows, 40) << "batches stay full";
  EXPECT_EQ(speech.bad.total(), 5);
  EXPECT_EQ(speech.bad.by_reason(),
            (std::map<std::string, int64_t>{{"changed", 4}, {"missing", 1}}));
  const std::string list = contents(folder.bad_list());
  for (const int i : {3, 5, 8, 11, 14}) EXPECT_TRUE(contains(list, folder.path(i) + "\t")) << list;
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 6);

  SpeechFeed again(folder.index, config, 1, "");
  const std::vector<Batch> first = epoch_of(again, config);
  SpeechFeed other(folder.index, config, 1, "");
  const std::vector<Batch> second = epoch_of(other, config);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].clips, second[i].clips);
}

TEST(SpeechBatches, PartsOfALongRecordingAreReadInPlace) {
  const TestFolder folder;
  constexpr int rate = 22050;
  std::vector<float> samples(30 * rate);
  for (size_t n = 0; n < samples.size(); ++n)
    samples[n] = static_cast<float>(0.3 * std::sin(1e-6 * static_cast<double>(n) * n));
  write_wav((folder / "long.wav").string(), samples, 1, rate, SampleFormat::float32);
  std::string manifest;
  for (int i = 0; i < 12; ++i) {
    manifest += fmt::format(
        R"({{"audio_filepath": "long.wav", "text": "part {}", "offset": {}, "duration": 1.5}})", i,
        2 * i);
    manifest += "\n";
  }
  const std::string index = prepare_corpus({.input = folder.write("manifest.jsonl", manifest),
                                            .limits = {.outlier_z = 0}})
                                .index;
  const DataConfig config = SpeechFolder::settings();
  SpeechFeed speech(index, config, 1, "");
  int64_t rows = 0;
  for (const Batch& batch : epoch_of(speech, config)) {
    for (int64_t row = 0; row < batch.rows; ++row, ++rows) {
      const ClipView clip = speech.corpus.index()[batch.clips[static_cast<size_t>(row)]];
      const at::Tensor part =
          at::from_blob(samples.data() + clip.first_frame, {1, clip.frames}, at::kFloat);
      const at::Tensor expected = log_mel({part, {clip.frames}, rate}, mel_default())[0];
      EXPECT_TRUE(
          at::equal(batch.fields[speech_mels][row].narrow(1, 0, expected.size(1)), expected));
    }
  }
  EXPECT_EQ(rows, 12);
}

TEST(SpeechBatches, TooManyBadClipsStopTheRunWithTheList) {
  const SpeechFolder folder;
  const DataConfig config = SpeechFolder::settings();
  for (int i = 0; i < 10; ++i) std::filesystem::remove(folder.path(4 * i));
  SpeechFeed speech(folder.index, config, 1, folder.bad_list());
  const Thrown thrown = thrown_by([&] { epoch_of(speech, config); });
  EXPECT_EQ(thrown.kind, "data");
  EXPECT_TRUE(contains(thrown.sentence, "missing), more than 20 %")) << thrown.sentence;
  EXPECT_TRUE(contains(thrown.sentence, folder.bad_list())) << thrown.sentence;
  EXPECT_TRUE(contains(contents(folder.bad_list()), "\tmissing\t"));
}

TEST(SpeechBatches, CachedMelsAreThoseThatWouldBeMade) {
  const SpeechFolder folder;
  DataConfig config = SpeechFolder::settings();
  SpeechFeed speech(folder.index, config, 1, "");
  SpeechOptions options = speech_options(config, 1);
  const std::string path = mel_cache_path(folder.index);
  EXPECT_EQ(cache_mels(speech.corpus.index(), options, path, 2, {}).reused, 0);
  EXPECT_EQ(cache_mels(speech.corpus.index(), options, path, 2, {}).reused, 40);
  const ClipCache cache = ClipCache::open(path);
  options.cache = &cache;
  SpeechBatches cached(speech.corpus, speech.order, speech.bad, options);
  EXPECT_TRUE(cached.cached());
  FeedOptions feeding{.end_batch = speech.order.batches_an_epoch(), .workers = 2};
  Feed feed(cached, cpu(), {&cpu()}, feeding);
  for (const Batch& expected : epoch_of(speech, config)) {
    const auto batch = feed.next(0);
    ASSERT_TRUE(batch);
    for (size_t field = 0; field < expected.fields.size(); ++field)
      EXPECT_TRUE(at::equal((*batch)->fields[field], expected.fields[field])) << field;
  }
  EXPECT_EQ(cached.native_reads(), 0) << "no sound was opened";
}

TEST(SpeechBatches, AFeedTakesTheCachedMelsOfItsIndex) {
  const SpeechFolder folder;
  const DataConfig config = SpeechFolder::settings();
  const std::string path = mel_cache_path(folder.index);
  {
    SpeechFeed speech(folder.index, config, 1, "");
    EXPECT_FALSE(speech.batches.cached());
    cache_mels(speech.corpus.index(), speech_options(config, 1), path, 2, {});
  }
  SpeechFeed speech(folder.index, config, 1, "");
  EXPECT_TRUE(speech.batches.cached());
  epoch_of(speech, config);
  EXPECT_EQ(speech.batches.native_reads(), 0) << "no sound was opened";
  std::ofstream(path, std::ios::binary) << "no cache";
  SpeechFeed without(folder.index, config, 1, "");
  EXPECT_FALSE(without.batches.cached()) << "one that cannot be read is computed anew";
}

TEST(SpeechBatches, OnSimulatedDevicesPreparationRunsOnTheDataDeviceAlone) {
  const auto devices = simulate_devices(2);
  count_operations(true);
  const SpeechFolder folder(20, {16000});
  const DataConfig config = SpeechFolder::settings();
  SpeechFeed speech(folder.index, config, 1, "");
  FeedOptions options = feed_options(config);
  options.end_batch = 5;
  Feed feed(speech.batches, *devices[0], {devices[1]}, options);
  while (const auto batch = feed.next(0)) {
  }
  const auto data = devices[0]->operations().by_name(), model = devices[1]->operations().by_name();
  EXPECT_EQ(data.at("tandem::resample"), 5u);
  EXPECT_EQ(data.at("tandem::log_mel"), 5u);
  for (const auto& [name, count] : model) EXPECT_FALSE(name.starts_with("tandem::")) << name;
}

}  // namespace tandem::tests
