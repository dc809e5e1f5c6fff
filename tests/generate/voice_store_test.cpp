#include "generate/voice_store.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/captured.h"
#include "support/tiny_xtts.h"

namespace tandem {
namespace {

class VoiceStoreTest : public testing::Test {
 protected:
  TestFolder folder;
  Xtts model = Xtts::make(xtts_preset("tiny"), 1);
  std::string recording = write_recording(folder, "a.wav");
};

TEST_F(VoiceStoreTest, MakesAVoiceOnceForAnyNumberOfThreads) {
  VoiceStore store(model, {});
  std::vector<std::thread> threads;
  std::vector<Voice> voices(8);
  for (Voice& voice : voices) {
    threads.emplace_back([&] { voice = store.get({.files = {recording}}); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.made(), 1);
  for (const Voice& voice : voices) EXPECT_TRUE(voice.conditioning.equal(voices[0].conditioning));
  store.get({.files = {recording}, .gpt_cond_len = 1});
  EXPECT_EQ(store.made(), 2) << "other options, another voice";
}

TEST_F(VoiceStoreTest, MakesItAgainWhenAFileChanges) {
  VoiceStore store(model, {});
  const Voice before = store.get({.files = {recording}});
  write_recording(folder, "a.wav", 1.1);
  const Voice after = store.get({.files = {recording}});
  EXPECT_EQ(store.made(), 2);
  EXPECT_FALSE(after.conditioning.equal(before.conditioning));
}

TEST_F(VoiceStoreTest, TriesAgainAfterAFailure) {
  VoiceStore store(model, {});
  const VoiceChoice choice{.files = {(folder / "later.wav").string()}};
  EXPECT_EQ(error_of([&] { store.get(choice); }).kind(), ErrorKind::io);
  write_recording(folder, "later.wav");
  EXPECT_TRUE(store.get(choice).speaker.defined());
}

TEST_F(VoiceStoreTest, KeepsAsManyAsItHasRoomForTheLastUsedOnes) {
  VoiceStore store(model, {}, 2);
  const auto get = [&](double seconds) {
    store.get({.files = {recording}, .gpt_cond_len = seconds});
    return store.made();
  };
  EXPECT_EQ(get(1), 1);
  EXPECT_EQ(get(2), 2);
  EXPECT_EQ(get(1), 2);
  EXPECT_EQ(get(3), 3);
  EXPECT_EQ(get(1), 3);
  EXPECT_EQ(get(2), 4);
}

TEST_F(VoiceStoreTest, RefusesAVoiceOfAnotherModel) {
  VoiceStore store(model, {});
  const std::string path = (folder / "wide.safetensors").string();
  save_voice(path, {at::zeros({32, 1024}), at::zeros({512})}, "wide");
  const Error error = error_of([&] { store.get({.saved = path}); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("1024"), std::string::npos);
}

TEST_F(VoiceStoreTest, SaysWhenTheFolderHasNoSpeakers) {
  VoiceStore store(model, {});
  EXPECT_TRUE(store.speakers().empty());
  const Error error = error_of([&] { store.get({.speaker = "Ana"}); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("holds no speakers"), std::string::npos);
}

}  // namespace
}  // namespace tandem
