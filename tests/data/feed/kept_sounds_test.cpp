#include "data/feed/kept_sounds.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "data/feed/speech_corpus_folder.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

constexpr int64_t plenty = 1 << 30;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void keep(KeptSounds& kept, int64_t clip, const std::vector<float>& samples) {
  kept.keep(clip, samples.data(), static_cast<int64_t>(samples.size()));
}

// What a batch holds of a sound, all of an epoch together.
std::vector<float> samples_of_an_epoch(SpeechFeed& speech) {
  const DeviceScope scope(DeviceRegistry::get().cpu());
  const auto host = speech.batches.make_host_batch(false);
  std::vector<float> all;
  for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index) {
    speech.batches.plan(*host, index);
    for (int task = 0; task < host->tasks; ++task) speech.batches.run_task(*host, task);
    const at::Tensor mels = speech.batches.make(*host).batch.fields[speech_mels].flatten();
    all.insert(all.end(), mels.const_data_ptr<float>(),
               mels.const_data_ptr<float>() + mels.numel());
  }
  return all;
}

}  // namespace

TEST(KeptSounds, ComeBackToTheLastBit) {
  const std::vector<std::vector<float>> sounds = {
      {0, 0.5f, -1, 32767 / 32768.0f, 1 / 32768.0f},  // as 16 bits hold it
      {0, 1},
      {0.1f, -0.0f},
      {-0.0f},
      {1e-30f, 2.5f, -3.0f},  // and as they do not
      {std::numeric_limits<float>::quiet_NaN()},
      {}};
  KeptSounds kept(static_cast<int64_t>(sounds.size()), plenty);
  for (size_t i = 0; i < sounds.size(); ++i) {
    std::vector<float> out(sounds[i].size(), 7);
    EXPECT_FALSE(kept.copy(static_cast<int64_t>(i), out.data()));
    keep(kept, static_cast<int64_t>(i), sounds[i]);
    EXPECT_TRUE(kept.copy(static_cast<int64_t>(i), out.data()));
    EXPECT_TRUE(same_bits(out, sounds[i])) << i;
  }
  EXPECT_EQ(kept.bytes(), 5 * 2 + (2 + 2 + 1 + 3 + 1) * 4);
  EXPECT_FALSE(kept.full());
}

TEST(KeptSounds, TakeNoMoreMemoryThanAllowedAllTogether) {
  const std::vector<float> sound(100, 0.1f);  // 400 bytes
  KeptSounds kept(4, 1000);
  for (const int64_t clip : {0, 1, 1, 2}) keep(kept, clip, sound);
  std::vector<float> out(100);
  EXPECT_TRUE(kept.copy(0, out.data()));
  EXPECT_TRUE(kept.copy(1, out.data()));
  EXPECT_FALSE(kept.copy(2, out.data()));
  EXPECT_TRUE(kept.full());
  EXPECT_EQ(kept.bytes(), 800);
  {
    KeptSounds another(1, 1000);
    keep(another, 0, sound);
    EXPECT_TRUE(another.full()) << "they share the memory";
  }
  KeptSounds after(1, 1300);
  keep(after, 0, sound);
  EXPECT_FALSE(after.full()) << "what was not kept took nothing";
}

TEST(KeptSounds, AreKeptOnceByManyThreads) {
  constexpr int64_t clips = 64;
  KeptSounds kept(clips, plenty);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int64_t clip = 0; clip < clips; ++clip) {
        const std::vector<float> sound(50, static_cast<float>(clip) / 32768);
        std::vector<float> out(50);
        if (kept.copy(clip, out.data())) {
          EXPECT_TRUE(same_bits(out, sound));
        }
        keep(kept, clip, sound);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kept.bytes(), clips * 50 * 2);
}

TEST(KeptSounds, AnEpochDecodesAndTheNextDoesNot) {
  const SpeechFolder folder(12, {16000, 22050});
  DataConfig config = SpeechFolder::settings();
  config.use_native_loading = false;
  SpeechFeed speech(folder.index, config, 1, "");
  const std::vector<float> first = samples_of_an_epoch(speech);
  EXPECT_EQ(speech.batches.general_reads(), 12);
  EXPECT_TRUE(same_bits(samples_of_an_epoch(speech), first));
  EXPECT_EQ(speech.batches.general_reads(), 12);
  config.decoded_memory = 0;
  SpeechFeed forgetful(folder.index, config, 1, "");
  for (int epoch = 0; epoch < 2; ++epoch)
    EXPECT_TRUE(same_bits(samples_of_an_epoch(forgetful), first));
  EXPECT_EQ(forgetful.batches.general_reads(), 24);
  EXPECT_EQ(forgetful.kept.bytes(), 0);
}

// The page cache does as much for files that need no decoding.
TEST(KeptSounds, PlainWavsAreReadAgain) {
  const SpeechFolder folder(6);
  SpeechFeed speech(folder.index, SpeechFolder::settings(), 1, "");
  for (int epoch = 0; epoch < 2; ++epoch) samples_of_an_epoch(speech);
  EXPECT_EQ(speech.batches.native_reads(), 12);
  EXPECT_EQ(speech.kept.bytes(), 0);
}

TEST(KeptSounds, AFileThatVanishedOrChangedIsNotedAllTheSame) {
  const SpeechFolder folder(12);
  DataConfig config = SpeechFolder::settings();
  config.use_native_loading = false;
  config.max_bad_share = 1;
  SpeechFeed speech(folder.index, config, 1, folder.bad_list());
  samples_of_an_epoch(speech);
  std::filesystem::remove(folder.path(3));
  put(folder.path(4), "other bytes");
  samples_of_an_epoch(speech);
  EXPECT_EQ(speech.bad.by_reason(),
            (std::map<std::string, int64_t>{{"changed", 1}, {"missing", 1}}));
}

}  // namespace tandem::tests
