#include "generate/speech_decoder.h"

#include <gtest/gtest.h>

#include "device/registry.h"
#include "generate/speech_requests.h"
#include "nn/rows/prefix_index.h"

namespace tandem {
namespace {

LogicalDevice& cpu() { return DeviceRegistry::get().cpu(); }

void expect_same(const std::vector<DecodedText>& ours, const std::vector<DecodedText>& others) {
  ASSERT_EQ(ours.size(), others.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].codes, others[i].codes) << i;
    EXPECT_TRUE(at::equal(ours[i].latents, others[i].latents)) << i;
  }
}

uint64_t rows_for(SpeechDecoder& decoder, const Xtts& model, int first, int texts, int voices) {
  const uint64_t before = decoder.prompt_rows();
  decode_texts(decoder, cpu(), model, first, texts, voices, 1);
  return decoder.prompt_rows() - before;
}

}  // namespace

TEST(PrefixIndex, FindsWhatIsTheSameToTheLastBit) {
  PrefixIndex index(2);
  const std::vector<float> zero = {1, 0}, minus = {1, -0.f}, longer = {1, 0, 0};
  EXPECT_EQ(index.find(zero), -1);
  const int64_t slot = index.keep(zero);
  EXPECT_EQ(index.find(zero), slot);
  EXPECT_EQ(index.find(minus), -1);
  EXPECT_EQ(index.find(longer), -1);
}

TEST(PrefixIndex, GivesTheSlotOfTheOneNotUsedForLongest) {
  PrefixIndex index(2);
  const std::vector<float> a = {1}, b = {2}, c = {3};
  const int64_t first = index.keep(a), second = index.keep(b);
  EXPECT_NE(first, second);
  EXPECT_EQ(index.find(a), first);
  EXPECT_EQ(index.keep(c), second);
  EXPECT_EQ(index.find(b), -1);
  EXPECT_EQ(index.find(a), first);
  EXPECT_EQ(index.find(c), second);
  EXPECT_EQ(index.size(), 2);
}

TEST(PrefixIndex, KeepsNothingWithoutRoom) {
  PrefixIndex index(0);
  const std::vector<float> rows = {1};
  EXPECT_EQ(index.keep(rows), -1);
  EXPECT_EQ(index.find(rows), -1);
}

TEST(PlainDecoder, SpeaksTheSameWithKeptVoices) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  constexpr int texts = 7, voices = 3;
  const auto none = make_plain_decoder(model.gpt, cpu(), texts, 0);
  for (const int64_t kept : {1, 2, 8}) {
    const auto decoder = make_plain_decoder(model.gpt, cpu(), texts, kept);
    for (const int first : {0, 1, 5})  // the first cold, the others at other places
      expect_same(decode_texts(*decoder, cpu(), model, first, texts, voices, 12),
                  decode_texts(*none, cpu(), model, first, texts, voices, 12));
  }
}

TEST(PlainDecoder, ComputesAVoiceOnce) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  const auto none = make_plain_decoder(model.gpt, cpu(), 6, 0);
  const auto decoder = make_plain_decoder(model.gpt, cpu(), 6, 3);
  const uint64_t whole = rows_for(*none, model, 0, 6, 3);
  EXPECT_EQ(rows_for(*decoder, model, 0, 6, 3), whole - 3 * 32);
  EXPECT_EQ(rows_for(*decoder, model, 0, 6, 3), whole - 6 * 32);
  EXPECT_EQ(rows_for(*none, model, 0, 6, 3), whole);
}

TEST(PlainDecoder, ForgetsVoicesItHasNoRoomFor) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  const auto none = make_plain_decoder(model.gpt, cpu(), 6, 0);
  const auto decoder = make_plain_decoder(model.gpt, cpu(), 6, 2);
  const uint64_t whole = rows_for(*none, model, 0, 6, 3);
  // Three voices by turns: each comes back when it has just been forgotten.
  EXPECT_EQ(rows_for(*decoder, model, 0, 6, 3), whole);
  EXPECT_EQ(rows_for(*decoder, model, 0, 6, 3), whole);
}

TEST(PlainDecoder, ComputesEveryRowWhereNoVoiceIsTold) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  const auto decoder = make_plain_decoder(model.gpt, cpu(), 1, 8);
  const SpeechRequest request = a_request(model, 0, 1);
  const at::Tensor prompt =
      model.gpt.prompt(request.text_ids, request.voice.conditioning).squeeze(0);
  for (const int64_t told : {int64_t{0}, int64_t{16}, prompt.size(0)}) {
    const uint64_t before = decoder->prompt_rows();
    for (int i = 0; i < 2; ++i) {
      decoder->start({{.place = 0, .prompt = prompt, .voice_rows = told}});
      decoder->collect();
    }
    EXPECT_EQ(decoder->prompt_rows() - before, 2 * static_cast<uint64_t>(prompt.size(0))) << told;
  }
}

TEST(PromptsStart, SayTheSameWhereSomeWaitForOthers) {
  const Xtts model = lively_model(xtts_preset("tiny"), /*stops=*/true);
  const auto few = speak(model, cpu(), 5, 84, 9);
  const auto many = speak(model, cpu(), 64, 84, 9);  // two at a time
  for (size_t i = 0; i < few.size(); ++i) {
    EXPECT_EQ(few[i].codes, many[i].codes) << i;
    EXPECT_EQ(few[i].samples, many[i].samples) << i;
  }
}

TEST(PromptsStart, AtOnceWhereThereArePlacesForAll) {
  EXPECT_TRUE(prompts_start({.places = 256, .free = 256, .waiting = 700}));
  EXPECT_TRUE(prompts_start({.places = 256, .free = 3, .waiting = 3}));
  EXPECT_TRUE(prompts_start({.places = 16, .free = 1, .waiting = 9}));
  EXPECT_TRUE(prompts_start({.places = 1, .free = 1, .waiting = 9}));
}

TEST(PromptsStart, SomeAtATimeWherePlacesAreShort) {
  EXPECT_FALSE(prompts_start({.places = 256, .free = 7, .waiting = 8}));
  EXPECT_TRUE(prompts_start({.places = 256, .free = 8, .waiting = 9}));
  EXPECT_FALSE(prompts_start({.places = 16, .free = 0, .waiting = 9}));
}

TEST(PromptsStart, NobodyWaitsForLongOrIsListenedTo) {
  EXPECT_FALSE(prompts_start({.places = 256, .free = 1, .waiting = 9, .turns = 7}));
  EXPECT_TRUE(prompts_start({.places = 256, .free = 1, .waiting = 9, .turns = 8}));
  EXPECT_TRUE(prompts_start({.places = 256, .free = 1, .waiting = 9, .streams = true}));
}

}  // namespace tandem
