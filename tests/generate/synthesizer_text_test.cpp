// One text through a made engine, whose attempts have known faults.
#include "generate/synthesizer_text.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <thread>

#include "generate/stop_control.h"
#include "support/captured.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

constexpr int rate = 24000, samples_a_code = 1000;

std::vector<float> tone(size_t count, float level = 0.2F) {
  std::vector<float> samples(count);
  for (size_t i = 0; i < count; ++i) samples[i] = level * std::sin(static_cast<float>(i) * 0.05F);
  return samples;
}

enum class Fault { none, loop, endless, pause };

// What an attempt of `request` gives: as many codes as its text is long, unless it goes wrong.
SpeechResult made_speech(const SpeechRequest& request, Fault fault) {
  SpeechResult result;
  auto count = static_cast<int64_t>(request.text_ids.size()) * 14 / 10 + 4;
  if (fault == Fault::endless) count = request.max_codes;
  for (int64_t i = 0; i < count; ++i) {
    result.codes.push_back(static_cast<int64_t>(
        counted_below(1024, request.seed, "code", 0, static_cast<uint64_t>(i))));
  }
  if (fault == Fault::loop) result.codes.insert(result.codes.end(), 30, 7);
  result.end = fault == Fault::endless ? SpeechEnd::max_codes : SpeechEnd::stop_token;
  result.samples = tone(result.codes.size() * samples_a_code);
  if (fault == Fault::pause) {
    result.samples.insert(result.samples.end(), 2 * rate, 0.0F);
    const std::vector<float> more = tone(3 * samples_a_code);
    result.samples.insert(result.samples.end(), more.begin(), more.end());
  }
  if (request.keep_latents) result.latents = at::ones({count + 1, 3});
  return result;
}

struct MadeEngine {
  std::function<Fault(const SpeechRequest&, int attempt)> fault = [](auto&, int) {
    return Fault::none;
  };
  std::vector<SpeechRequest> seen = {};
  std::map<std::vector<int64_t>, int> attempts = {};
  int open = 0, most_open = 0;

  SubmitPiece submit() {
    return [this](SpeechRequest request) {
      std::promise<SpeechResult> promise;
      const SpeechResult result =
          made_speech(request, fault(request, attempts[request.text_ids]++));
      if (request.on_sound) {
        const std::span<const float> all(result.samples);
        for (size_t at = 0; at < all.size(); at += 7000) {
          request.on_sound(all.subspan(at, std::min<size_t>(7000, all.size() - at)));
        }
      }
      promise.set_value(result);
      seen.push_back(std::move(request));
      most_open = std::max(most_open, ++open);
      std::shared_ptr<void> place(nullptr, [this](void*) { --open; });
      return PendingSpeech{.result = promise.get_future(), .place = place};
    };
  }
};

// Pieces of 20, 21, … characters, each its own id.
TextToSpeak made_text(int64_t pieces) {
  TextToSpeak text;
  for (int64_t i = 0; i < pieces; ++i) {
    text.pieces.push_back({.text = "piece",
                           .normalised = "piece",
                           .ids = std::vector<int64_t>(static_cast<size_t>(20 + i), i),
                           .characters = 20 + i,
                           .ends_sentence = i % 2 == 0});
  }
  text.seed = 5;
  return text;
}

using Names = std::vector<std::string>;

TEST(SpeakText, JoinsPiecesInOrderWithAShortPause) {
  MadeEngine engine;
  const Speech speech = speak_text(made_text(3), engine.submit());
  ASSERT_EQ(speech.pieces.size(), 3);
  int64_t end = 0;
  const double pauses[] = {0, 0.22, 0.04};
  for (size_t i = 0; i < 3; ++i) {
    const SpeechPiece& piece = speech.pieces[i];
    EXPECT_EQ(piece.first_sample, end + std::lround(pauses[i] * rate)) << i;
    EXPECT_EQ(piece.samples, static_cast<int64_t>(piece.codes.size()) * samples_a_code);
    EXPECT_EQ(piece.seed, counted_draw(5, "piece", i, 0));
    EXPECT_EQ(piece.end, "stop");
    end = piece.first_sample + piece.samples;
  }
  EXPECT_EQ(static_cast<int64_t>(speech.samples.size()), end);
}

TEST(SpeakText, CompatJoinsWhatTheModelGivesAndNothingElse) {
  MadeEngine engine{.fault = [](auto&, int) { return Fault::pause; }};
  TextToSpeak text = made_text(2);
  text.stop_control = false;
  const Speech speech = speak_text(text, engine.submit());
  std::vector<float> expected;
  for (const SpeechRequest& request : engine.seen) {
    EXPECT_EQ(request.max_codes, 602);
    const SpeechResult result = made_speech(request, Fault::pause);
    expected.insert(expected.end(), result.samples.begin(), result.samples.end());
  }
  EXPECT_EQ(speech.samples, expected);
  EXPECT_EQ(engine.seen.size(), 2);
  EXPECT_TRUE(speech.pieces[0].troubles.empty());
}

TEST(SpeakText, SpeaksATroubledPieceAgainWithAnotherSeed) {
  for (const auto& [fault, name] : {std::pair{Fault::loop, "repetition"},
                                    {Fault::endless, "too long"},
                                    {Fault::pause, "silence"}}) {
    MadeEngine engine;
    engine.fault = [fault = fault](const SpeechRequest& request, int attempt) {
      return request.text_ids.front() == 1 && attempt == 0 ? fault : Fault::none;
    };
    const Speech speech = speak_text(made_text(3), engine.submit());
    EXPECT_EQ(engine.seen.size(), 4);
    EXPECT_EQ(speech.pieces[0].attempts, 1);
    EXPECT_EQ(speech.pieces[1].attempts, 2);
    EXPECT_EQ(speech.pieces[1].seed, counted_draw(5, "piece", 1, 1));
    EXPECT_TRUE(speech.pieces[1].troubles.empty());
    EXPECT_EQ(speech.pieces[1].other_troubles, Names{name});
  }
}

TEST(SpeakText, KeepsTheLeastTroubledAttemptWhenAllGoWrong) {
  MadeEngine engine;
  engine.fault = [](auto&, int attempt) { return attempt == 1 ? Fault::loop : Fault::endless; };
  TextToSpeak text = made_text(1);
  text.pieces[0].characters = 60;
  const Speech speech = speak_text(text, engine.submit());
  EXPECT_EQ(speech.pieces[0].attempts, 3);
  EXPECT_EQ(speech.pieces[0].seed, counted_draw(5, "piece", 0, 1));
  EXPECT_EQ(speech.pieces[0].troubles, Names{"repetition"});
  EXPECT_EQ(speech.pieces[0].other_troubles, (Names{"too long", "too long"}));
}

TEST(SpeakText, DoesNotSpeakAgainWhereItCannotHelp) {
  const auto attempts = [](const std::function<void(TextToSpeak&)>& change) {
    MadeEngine engine{.fault = [](auto&, int) { return Fault::loop; }};
    TextToSpeak text = made_text(1);
    change(text);
    const Speech speech = speak_text(text, engine.submit());
    return engine.seen.size();
  };
  EXPECT_EQ(attempts([](TextToSpeak&) {}), 3);
  EXPECT_EQ(attempts([](TextToSpeak& text) { text.greedy = true; }), 1);
  EXPECT_EQ(attempts([](TextToSpeak& text) { text.stop_control = false; }), 1);
  EXPECT_EQ(attempts([](TextToSpeak& text) { text.max_retries = 0; }), 1);
  EXPECT_EQ(attempts([](TextToSpeak& text) { text.on_sound = [](auto) {}; }), 1);
}

TEST(SpeakText, BoundsEveryPieceByItsText) {
  MadeEngine engine{.fault = [](auto&, int) { return Fault::endless; }};
  TextToSpeak text = made_text(1);
  text.max_retries = 0;
  const Speech speech = speak_text(text, engine.submit());
  EXPECT_EQ(engine.seen[0].max_codes, code_bound(20, 602));
  EXPECT_EQ(speech.pieces[0].end, "length");
  EXPECT_EQ(speech.pieces[0].troubles, Names{"too long"});
}

// A tenth of the attempts go wrong, each in a way the checks know, and independently: what retries
// can win at most.
TEST(SpeakText, LeavesOneInAThousandOfOneInTenFaults) {
  int faulty = 0, planted = 0;
  constexpr uint64_t texts = 3000;
  for (uint64_t seed = 0; seed < texts; ++seed) {
    MadeEngine engine;
    engine.fault = [&](const SpeechRequest& request, int attempt) {
      const uint64_t draw = counted_below(30, request.seed, "fault", 0, 0);
      planted += attempt == 0 && draw < 3;
      return draw == 0   ? Fault::loop
             : draw == 1 ? Fault::endless
             : draw == 2 ? Fault::pause
                         : Fault::none;
    };
    TextToSpeak text = made_text(1);
    text.seed = seed;
    faulty += !speak_text(text, engine.submit()).pieces[0].troubles.empty();
  }
  EXPECT_NEAR(planted, 300, 60);
  EXPECT_LE(faulty, 12);
  RecordProperty("faults_planted", planted);
  RecordProperty("faults_left", faulty);
}

TEST(SpeakText, StreamsInOrderAndTheStreamIsTheWhole) {
  MadeEngine whole_engine, engine;
  engine.fault = whole_engine.fault = [](const SpeechRequest& request, int) {
    return request.text_ids.front() == 1 ? Fault::pause : Fault::none;
  };
  TextToSpeak text = made_text(4);
  text.max_retries = 0;
  const Speech whole = speak_text(text, whole_engine.submit());
  std::vector<float> streamed;
  text.on_sound = [&](std::span<const float> part) {
    EXPECT_FALSE(part.empty());
    streamed.insert(streamed.end(), part.begin(), part.end());
  };
  const Speech speech = speak_text(text, engine.submit());
  EXPECT_EQ(streamed, speech.samples);
  EXPECT_EQ(speech.samples, whole.samples);
  EXPECT_GT(speech.first_sound_seconds, 0);
  EXPECT_GT(speech.pieces[1].silence_cut, 1);
  EXPECT_EQ(speech.pieces[1].troubles, Names{"silence"});
}

TEST(SpeakText, HasAWindowOfPiecesInTheEngines) {
  MadeEngine engine;
  TextToSpeak text = made_text(20);
  text.window = 4;
  EXPECT_EQ(speak_text(text, engine.submit()).pieces.size(), 20);
  EXPECT_EQ(engine.most_open, 4);
  EXPECT_EQ(engine.open, 0);
}

// An engine that never answers.
struct SilentEngine {
  std::vector<std::promise<SpeechResult>> promises = {};
  std::vector<std::shared_ptr<std::atomic<bool>>> cancels = {};
  SubmitPiece submit() {
    return [this](const SpeechRequest& request) {
      cancels.push_back(request.cancel);
      return PendingSpeech{.result = promises.emplace_back().get_future(), .place = nullptr};
    };
  }
};

TEST(SpeakText, GivesUpWhenAskedAndTellsTheEngine) {
  for (const bool streamed : {false, true}) {
    SilentEngine engine;
    TextToSpeak text = made_text(3);
    int looks = 0;
    text.given_up = [&] { return ++looks > 5; };
    if (streamed) text.on_sound = [](auto) {};
    const Error error = error_of([&] { speak_text(text, engine.submit()); });
    EXPECT_EQ(error.kind(), ErrorKind::interrupted);
    ASSERT_EQ(engine.cancels.size(), 3);
    for (const auto& cancel : engine.cancels) EXPECT_TRUE(*cancel);
  }
}

TEST(SpeakText, WhatTheListenerThrowsEndsTheSpeech) {
  MadeEngine engine;
  TextToSpeak text = made_text(3);
  text.on_sound = [](auto) { throw Error(ErrorKind::io, "the listener has gone"); };
  EXPECT_STREQ(error_of([&] { speak_text(text, engine.submit()); }).what(),
               "the listener has gone");
  for (const SpeechRequest& request : engine.seen) EXPECT_TRUE(*request.cancel);
}

TEST(SpeakText, PassesOnWhatTheEngineThrows) {
  const SubmitPiece submit = [](const SpeechRequest&) {
    std::promise<SpeechResult> promise;
    promise.set_exception(std::make_exception_ptr(Error(ErrorKind::memory, "no room")));
    return PendingSpeech{.result = promise.get_future(), .place = nullptr};
  };
  EXPECT_EQ(error_of([&] { speak_text(made_text(2), submit); }).kind(), ErrorKind::memory);
}

TEST(SpeakText, KeepsLatentsWhenAsked) {
  MadeEngine engine;
  TextToSpeak text = made_text(1);
  text.keep_latents = true;
  const Speech speech = speak_text(text, engine.submit());
  EXPECT_EQ(speech.pieces[0].latent_rows, static_cast<int64_t>(speech.pieces[0].codes.size()) + 1);
  EXPECT_EQ(speech.pieces[0].latents.size(), speech.pieces[0].latent_rows * 3);
}

}  // namespace
}  // namespace tandem
