#include <gtest/gtest.h>

#include <cmath>

#include "device/registry.h"
#include "generate/speaking.h"
#include "generate/speech_requests.h"
#include "support/captured.h"
#include "tandem/error.h"

namespace tandem {
namespace {

LogicalDevice& cpu() { return DeviceRegistry::get().cpu(); }

double snr(const std::vector<float>& ours, const std::vector<float>& reference) {
  double noise = 0, power = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    noise += std::pow(static_cast<double>(ours[i]) - reference[i], 2);
    power += std::pow(static_cast<double>(reference[i]), 2);
  }
  return 10 * std::log10(power / std::max(noise, 1e-30));
}

std::vector<float> to_vector(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

}  // namespace

TEST(SpeechEngine, SaysTheSameInEveryBatch) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  const auto alone = speak(model, cpu(), 1, 12, 20);
  for (const int64_t places : {3, 7, 32}) {
    const auto together = speak(model, cpu(), places, 12, 20);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(alone[i].codes, together[i].codes) << places << " places, request " << i;
      EXPECT_EQ(alone[i].samples, together[i].samples) << places << " places, request " << i;
    }
  }
}

TEST(SpeechEngine, StepsGiveTheLatentsOfOnePass) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  const SpeechRequest request = a_request(model, 0, 25);
  SpeechEngine engine(model, cpu());
  const SpeechResult result = engine.submit(request).get();
  ASSERT_EQ(result.codes.size(), 25u);
  EXPECT_EQ(result.end, SpeechEnd::max_codes);
  const at::Tensor reference =
      model.gpt.latents(request.text_ids, result.codes, request.voice.conditioning).squeeze(0);
  EXPECT_LE((result.latents - reference).abs().max().item<double>(), 5e-5);
  const at::Tensor sound =
      model.vocoder(reference.unsqueeze(0), request.voice.speaker.unsqueeze(0)).squeeze(0);
  ASSERT_EQ(result.samples.size(), static_cast<size_t>(sound.numel()));
  EXPECT_GE(snr(result.samples, to_vector(sound)), 90);
}

TEST(SpeechEngine, StopsAtTheStopCodeAndKeepsItsLatent) {
  Xtts model = lively_model(xtts_preset("tiny"), /*stops=*/true);
  model.gpt.audio_head.bias[model.gpt.size.stop_audio_token] = 1e6;
  SpeechEngine engine(model, cpu());
  const SpeechResult result = engine.submit(a_request(model, 1, 30)).get();
  EXPECT_EQ(result.end, SpeechEnd::stop_token);
  EXPECT_TRUE(result.codes.empty());
  EXPECT_EQ(result.latents.size(0), 1);
  EXPECT_EQ(static_cast<int64_t>(result.samples.size()),
            model.vocoder.frames_of(1) * model.vocoder.samples_a_frame());
}

TEST(SpeechEngine, WhatIsStreamedIsTheWhole) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  for (const double speed : {1.0, 0.7, 1.6}) {
    SpeechRequest request = a_request(model, 2, 40);
    request.speed = speed;
    SpeechEngine engine(model, cpu());
    const SpeechResult whole = engine.submit(request).get();
    std::vector<float> joined;
    int pieces = 0;
    request.first_chunk_codes = 8;
    request.chunk_codes = 10;
    request.on_sound = [&](std::span<const float> piece) {
      joined.insert(joined.end(), piece.begin(), piece.end());
      ++pieces;
    };
    const SpeechResult streamed = engine.submit(request).get();
    EXPECT_GE(pieces, 3) << speed;
    EXPECT_EQ(joined, streamed.samples);
    ASSERT_EQ(joined.size(), whole.samples.size()) << speed;
    EXPECT_GE(snr(joined, whole.samples), 90) << speed;
  }
}

TEST(SpeechEngine, StreamsInPiecesOfAnyLength) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  SpeechEngine engine(model, cpu(), {.places = 2});
  SpeechRequest request = a_request(model, 2, 40);
  const SpeechResult whole = engine.submit(request).get();
  for (const int64_t first : {0, 1, 39, 100}) {
    for (const int64_t next : {0, 25}) {
      request.first_chunk_codes = first;
      request.chunk_codes = next;
      request.on_sound = [](std::span<const float>) {};
      auto beside = engine.submit(request);
      const SpeechResult streamed = engine.submit(request).get();
      EXPECT_EQ(streamed.codes, whole.codes) << first << ", " << next;
      ASSERT_EQ(streamed.samples.size(), whole.samples.size()) << first << ", " << next;
      EXPECT_GE(snr(streamed.samples, whole.samples), 90) << first << ", " << next;
      EXPECT_EQ(beside.get().samples, streamed.samples) << first << ", " << next;
    }
  }
}

TEST(SpeechEngine, AFirstPieceComesFromItsLastCodeOnUntilItIsHeard) {
  Speaking speaking;
  speaking.next_chunk = 8;
  speaking.asked = 8, speaking.drawn = 3;
  EXPECT_FALSE(speaking.first_piece_comes()) << "nobody listens";
  speaking.request.on_sound = [](std::span<const float>) {};
  EXPECT_TRUE(speaking.first_piece_comes());
  speaking.asked = 7;
  EXPECT_FALSE(speaking.first_piece_comes()) << "a code of it is not asked for";
  speaking.asked = speaking.drawn = 8;
  speaking.next_chunk = 28;
  speaking.pieces_open = 1;
  EXPECT_TRUE(speaking.first_piece_comes()) << "its sound is being made";
  speaking.pieces_open = 0;
  EXPECT_FALSE(speaking.first_piece_comes()) << "so few codes gave no sound";
  speaking.pieces_open = 1;
  speaking.result.samples = {0.5f};
  EXPECT_FALSE(speaking.first_piece_comes()) << "it was heard";
}

TEST(SpeechEngine, GreedyTakesNoNoticeOfTheSeed) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  SpeechEngine engine(model, cpu());
  SpeechRequest request = a_request(model, 0, 20);
  request.greedy = true;
  const auto first = engine.submit(request).get().codes;
  request.seed = 99;
  EXPECT_EQ(engine.submit(request).get().codes, first);
  request.greedy = false;
  EXPECT_NE(engine.submit(request).get().codes, first);
}

TEST(SpeechEngine, GivesUpWhatIsCancelledAndSpeaksOn) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  const auto reference = speak(model, cpu(), 1, 6, 30);
  SpeechEngine engine(model, cpu(), {.places = 2});
  std::vector<std::future<SpeechResult>> futures;
  for (int i = 0; i < 6; ++i) {
    SpeechRequest request = a_request(model, i, 30 - i % 5);
    request.cancel = std::make_shared<std::atomic<bool>>(i % 2 == 1);
    futures.push_back(engine.submit(std::move(request)));
  }
  for (size_t i = 0; i < futures.size(); ++i) {
    const SpeechResult result = futures[i].get();
    if (i % 2 == 1) {
      EXPECT_EQ(result.end, SpeechEnd::cancelled);
    } else {
      EXPECT_EQ(result.samples, reference[i].samples);
    }
  }
}

TEST(SpeechEngine, AnswersWrongRequestsWithASentence) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  SpeechEngine engine(model, cpu());
  const auto complaint = [&](auto change) {
    SpeechRequest request = a_request(model, 0, 5);
    change(request);
    auto future = engine.submit(std::move(request));
    return std::string(error_of([&] { future.get(); }).what());
  };
  EXPECT_NE(complaint([](auto& r) { r.text_ids.assign(5000, 1); }).find("tokens"),
            std::string::npos);
  EXPECT_NE(complaint([](auto& r) { r.text_ids = {1'000'000}; }).find("text token"),
            std::string::npos);
  EXPECT_NE(complaint([](auto& r) { r.sampling.temperature = 0; }).find("temperature"),
            std::string::npos);
  EXPECT_NE(complaint([](auto& r) { r.speed = 0; }).find("speed"), std::string::npos);
  EXPECT_EQ(engine.submit(a_request(model, 0, 5)).get().codes.size(), 5u);
}

TEST(SpeechEngine, HalfPrecisionNeedsAGpu) {
  const Xtts model = lively_model(xtts_preset("tiny"));
  EXPECT_THROW(SpeechEngine(model, cpu(), {.precision = SpeechPrecision::fp16}), Error);
}

}  // namespace tandem
