// Made cases with known faults: what stop control must find, and what it must leave alone.
#include "generate/stop_control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "audio/file/audio_file.h"
#include "data/corpus/text_table.h"
#include "text/clean_characters.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

constexpr int rate = 24000;

// Codes of healthy speech: no short period.
std::vector<int64_t> speech_codes(int64_t count, uint64_t seed = 1) {
  std::vector<int64_t> codes;
  for (int64_t i = 0; i < count; ++i) {
    codes.push_back(
        static_cast<int64_t>(counted_below(1024, seed, "code", 0, static_cast<uint64_t>(i))));
  }
  return codes;
}

std::vector<int64_t> looped(int64_t healthy, int64_t period, int64_t turns, int64_t after) {
  std::vector<int64_t> codes = speech_codes(healthy);
  const std::vector<int64_t> turn = speech_codes(period, 2);
  for (int64_t i = 0; i < turns; ++i) codes.insert(codes.end(), turn.begin(), turn.end());
  const std::vector<int64_t> rest = speech_codes(after, 3);
  codes.insert(codes.end(), rest.begin(), rest.end());
  return codes;
}

struct Sound {
  std::vector<float> samples;
  Sound& tone(double seconds, double level = 0.3) {
    const auto count = static_cast<int>(seconds * rate);
    for (int i = 0; i < count; ++i) {
      samples.push_back(
          static_cast<float>(level * std::sin(2 * std::numbers::pi * 220 * i / rate)));
    }
    return *this;
  }
  Sound& quiet(double seconds, double level = 0) { return tone(seconds, level); }
  double seconds() const { return static_cast<double>(samples.size()) / rate; }
};

struct Cut {
  Sound sound;
  double pause, tail, cut;
};

Cut cut(const std::vector<float>& samples, size_t step) {
  Cut result{};
  SilenceCutter cutter(rate, [&](std::span<const float> part) {
    result.sound.samples.insert(result.sound.samples.end(), part.begin(), part.end());
  });
  for (size_t at = 0; at < samples.size(); at += step) {
    cutter.push(std::span<const float>(samples).subspan(at, std::min(step, samples.size() - at)));
  }
  cutter.finish();
  result.pause = cutter.longest_pause();
  result.tail = cutter.tail_silence();
  result.cut = cutter.cut_seconds();
  return result;
}

TEST(StopControl, BoundLeavesRoomForSlowSpeechAndEndsGibberish) {
  EXPECT_EQ(code_bound(250, 602), 602);
  EXPECT_EQ(code_bound(100, 602), 448);
  EXPECT_EQ(code_bound(5, 602), 68);  // "hello": 3.2 s, not 28
  EXPECT_EQ(code_bound(5, 20), 20);
  for (int64_t characters = 1; characters <= 250; ++characters) {
    const int64_t slow = 10 + characters * 28 / 10;  // twice as long as usual
    EXPECT_GE(code_bound(characters, 602), std::min<int64_t>(602, slow)) << characters;
    EXPECT_LE(code_least(characters), characters * 7 / 10 + 1) << characters;  // twice as fast
  }
}

// Real speech: a careful speaker's prompts, each of which an attempt might have been.
TEST(StopControl, FindsNoTroubleInTheDemoRecordings) {
  const std::string demo = TANDEM_SOURCE_DIR "/assets/demo/";
  const TextTable table = load_table(demo + "metadata.csv");
  Records records(table, '|');
  int clips = 0;
  for (Record record; records.next(record); ++clips) {
    const auto file = open_audio({.path = demo + "wavs/" + record.fields[0] + ".flac"});
    std::vector<float> samples(static_cast<size_t>(file->info().frames));
    file->read_mono(0, file->info().frames, samples.data());
    SilenceCutter cutter(file->info().sample_rate, [](auto) {});
    cutter.push(samples);
    cutter.finish();
    const auto codes = static_cast<int64_t>(std::ceil(file->info().seconds() * 22050 / 1024));
    const auto characters = static_cast<int64_t>(decode_utf8(record.fields.back()).size());
    EXPECT_LT(2 * codes, code_bound(characters, 602)) << record.fields[0];
    const std::vector<int64_t> said = speech_codes(codes);
    const AttemptReport report = judge_attempt({.codes = said,
                                                .characters = characters,
                                                .longest_pause = cutter.longest_pause(),
                                                .tail_silence = cutter.tail_silence()});
    EXPECT_TRUE(report.troubles.empty()) << record.fields[0] << ": " << report.troubles.front();
    EXPECT_LT(cutter.cut_seconds(), 0.25) << record.fields[0];
  }
  EXPECT_EQ(clips, 92);
}

TEST(StopControl, FindsEveryLoopOfThreeTurnsAndWhereItBegins) {
  for (int64_t period = 1; period <= 24; ++period) {
    const int64_t turns = std::max<int64_t>(3, 17 / period + 2);
    const auto found = find_repetition(looped(40, period, turns, 20));
    ASSERT_TRUE(found) << period;
    EXPECT_EQ(found->period, period);
    EXPECT_EQ(found->first, 40);
    EXPECT_EQ(found->codes, period * turns);
  }
}

TEST(StopControl, LeavesHealthyCodesAlone) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_FALSE(find_repetition(speech_codes(600, seed))) << seed;
  }
  EXPECT_FALSE(find_repetition(looped(40, 1, 16, 20)));  // one sound held for 0.74 s
  EXPECT_FALSE(find_repetition(looped(40, 12, 2, 20)));  // a word said twice
  EXPECT_FALSE(find_repetition({}));
}

TEST(StopControl, ShortensALongPauseAndTheTailOnly) {
  const Sound given = Sound().tone(1).quiet(0.8).tone(1).quiet(3).tone(1).quiet(2);
  const Cut result = cut(given.samples, 1000);
  EXPECT_NEAR(result.sound.seconds(), 1 + 0.8 + 1 + 0.6 + 1 + 0.08, 0.06);
  EXPECT_NEAR(result.pause, 3, 0.05);
  EXPECT_NEAR(result.tail, 2, 0.05);
  EXPECT_NEAR(result.sound.seconds() + result.cut, given.seconds(), 1e-9);
}

TEST(StopControl, SilenceIsJudgedAgainstTheLoudestSound) {
  // Room noise 54 dB under the voice is silence; a whisper 34 dB under it is not.
  EXPECT_NEAR(cut(Sound().tone(1).quiet(3, 0.0006).tone(1).samples, 512).pause, 3, 0.05);
  const Sound whisper = Sound().tone(1).quiet(3, 0.006).tone(1);
  const Cut result = cut(whisper.samples, 512);
  EXPECT_EQ(result.sound.samples, whisper.samples);
  EXPECT_EQ(result.pause, 0);
}

TEST(StopControl, CutsAlikeHoweverTheSoundComes) {
  const Sound given = Sound().tone(0.7).quiet(2.2).tone(0.313).quiet(0.5).tone(0.21).quiet(1.7);
  const std::vector<float> whole = cut(given.samples, given.samples.size()).sound.samples;
  EXPECT_LT(whole.size(), given.samples.size());
  for (const size_t step : {1UL, 7UL, 480UL, 1114UL, 9000UL}) {
    EXPECT_EQ(cut(given.samples, step).sound.samples, whole) << step;
  }
}

TEST(StopControl, KeepsSoundWithoutSilenceAndSilenceWithoutSoundAsTheyAre) {
  const Sound tone = Sound().tone(1.2345);
  EXPECT_EQ(cut(tone.samples, 100).sound.samples, tone.samples);
  const Sound nothing = Sound().quiet(2);
  EXPECT_EQ(cut(nothing.samples, 100).sound.samples, nothing.samples);
  EXPECT_TRUE(cut({}, 100).sound.samples.empty());
}

TEST(StopControl, NamesEachTroubleAndPrefersTheAttemptWithLess) {
  const std::vector<int64_t> healthy = speech_codes(140);
  EXPECT_TRUE(judge_attempt({.codes = healthy, .characters = 100}).troubles.empty());
  EXPECT_EQ(judge_attempt({.codes = healthy, .characters = 100}).cost, 0);
  const auto troubles = [](const AttemptFacts& facts) { return judge_attempt(facts).troubles; };
  using Names = std::vector<std::string>;
  const std::vector<int64_t> loop = looped(100, 2, 20, 0), few = speech_codes(20);
  EXPECT_EQ(troubles({.codes = healthy, .stopped = false, .characters = 20}), Names{"too long"});
  EXPECT_EQ(troubles({.codes = few, .characters = 100}), Names{"too short"});
  EXPECT_EQ(troubles({.codes = loop, .characters = 100}), Names{"repetition"});
  EXPECT_EQ(troubles({.codes = healthy, .characters = 100, .longest_pause = 1.5}),
            Names{"silence"});
  EXPECT_EQ(troubles({.codes = healthy, .characters = 100, .tail_silence = 4}), Names{"silence"});
  EXPECT_TRUE(troubles({.codes = healthy, .characters = 100, .tail_silence = 2}).empty());
  // A short loop at the end is less trouble than half a minute of gibberish.
  const std::vector<int64_t> endless = speech_codes(602);
  EXPECT_LT(judge_attempt({.codes = loop, .characters = 100}).cost,
            judge_attempt({.codes = endless, .stopped = false, .characters = 100}).cost);
}

}  // namespace
}  // namespace tandem
