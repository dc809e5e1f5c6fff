// Under which reason a clip that cannot be used is counted.
#include <gtest/gtest.h>

#include "data/feed/feature_cache.h"
#include "data/feed/speech_corpus_folder.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

void make_an_epoch(SpeechBatches& batches, int64_t count) {
  const DeviceScope scope(DeviceRegistry::get().cpu());
  const auto host = batches.make_host_batch(false);
  for (int64_t index = 0; index < count; ++index) {
    batches.plan(*host, index);
    for (int task = 0; task < host->tasks; ++task) batches.run_task(*host, task);
  }
}

}  // namespace

TEST(SpeechFaults, ATextThatCannotBeReadIsNoText) {
  const SpeechFolder folder(66);
  std::vector<Clip> clips = folder.clips();
  clips.back().text = "not UTF-8: \xff";
  clips.back().language = "en";
  const DataConfig config = SpeechFolder::settings();
  SpeechFeed speech(SpeechCorpus(ClipIndex::from(std::move(clips), "/"), nullptr, {}), config,
                    {.seed = 1, .bad_list = folder.bad_list()});
  make_an_epoch(speech.batches, speech.order.batches_an_epoch());
  EXPECT_EQ(speech.bad.by_reason(), (std::map<std::string, int64_t>{{"no text", 1}}));
  EXPECT_TRUE(contains(contents(folder.bad_list()), "not UTF-8")) << contents(folder.bad_list());
}

TEST(SpeechFaults, SecondsThatLeaveAReplicaWithoutClipsAreRefused) {
  const SpeechFolder folder(12);
  DataConfig config = SpeechFolder::settings();
  config.batch_seconds = 0.1;
  const auto open = [&](int64_t replicas) {
    SpeechFeed(SpeechCorpus::open(folder.index, {}), config, {.seed = 1, .replicas = replicas});
  };
  EXPECT_NO_THROW(open(1));
  const Thrown refused = thrown_by([&] { open(4); });
  EXPECT_EQ(refused.kind, "config");
  EXPECT_TRUE(contains(refused.sentence, "data.batch_seconds is 0.1: a batch of clips of ") &&
              contains(refused.sentence, "has 1, fewer than the 4 replicas that share it"))
      << refused.sentence;
}

TEST(SpeechFaults, AreListedOnceWhenTheFolderOfTheListIsThere) {
  const TestFolder scratch;
  const std::filesystem::path list = scratch / "run" / "bad_files.tsv";
  const std::string first = "path\treason\tsentence\nlong.wav\ttoo long\tit lasts an hour\n";
  {
    BadFiles bad(list.string(), 4, {}, /*waits=*/true);
    bad.leave_out(1, "long.wav", "too long", "it lasts an hour");
    EXPECT_FALSE(std::filesystem::exists(scratch / "run"));
    std::filesystem::create_directory(scratch / "run");
    bad.begin();
    bad.begin();
    EXPECT_EQ(contents(list), first);
  }
  // The run goes on: what it listed is not listed again, and nothing before it may go on.
  BadFiles again(list.string(), 4, {}, /*waits=*/true);
  again.leave_out(1, "long.wav", "too long", "it lasts an hour");
  again.leave_out(2, "longer.wav", "too long", "it lasts two");
  EXPECT_EQ(contents(list), first);
  again.begin();
  again.leave_out(3, "longest.wav", "too long", "it lasts three");
  EXPECT_EQ(contents(list), first +
                                "longer.wav\ttoo long\tit lasts two\n"
                                "longest.wav\ttoo long\tit lasts three\n");
}

TEST(SpeechFaults, DamagedMelsOfACacheAreNotCalledMissingText) {
  const SpeechFolder folder(12);
  const DataConfig config = SpeechFolder::settings();
  SpeechFeed speech(folder.index, config, 1, "");
  SpeechOptions options = speech_options(config, 1);
  const std::string path = mel_cache_path(folder.index);
  cache_mels(speech.corpus.index(), options, path, 1, {});
  std::string bytes = contents(path);
  bytes[bytes.size() - 30] = static_cast<char>(bytes[bytes.size() - 30] ^ 0x40);
  put(path, bytes);
  const ClipCache cache = ClipCache::open(path);
  options.cache = &cache;
  SpeechBatches cached(speech.corpus, speech.order, speech.bad, options);
  ASSERT_TRUE(cached.cached());
  make_an_epoch(cached, speech.order.batches_an_epoch());
  EXPECT_EQ(speech.bad.by_reason(), (std::map<std::string, int64_t>{{"damaged cache", 1}}));
}

}  // namespace tandem::tests
