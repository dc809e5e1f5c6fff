#include "audio/signal/augment.h"

#include <set>

#include "audio/signal/clips.h"
#include "audio/signal/noise_draw.h"
#include "audio/signal/preemphasis.h"
#include "audio/signal/slice.h"
#include "support/captured.h"

namespace tandem::tests {
namespace {

double energy(const at::Tensor& x) { return x.to(at::kDouble).square().sum().item<double>(); }

}  // namespace

TEST(Preemphasis, EqualsTorchaudio) {
  const Waves out = preemphasise(batch_of({clip(900, 16000, 8), clip(500, 16000)}, 16000));
  EXPECT_LE(difference(row_of(out, 1), fixture("preemphasis")), 1e-7);
}

TEST(Preemphasis, ARowIsWhatItIsAlone) {
  expect_rows_alone(ragged_clips(16000), 16000,
                    [](const Waves& waves, size_t) { return preemphasise(waves, 0.5); });
}

TEST(Noise, IsCountedRandomness) {
  for (const uint64_t place : {0ull, 1ull, 77'777ull}) {
    const uint64_t key = 0x123456789abcdefULL, draw = mix_bits(key ^ place);
    double sum = 0;
    for (int piece = 0; piece < 4; ++piece)
      sum += static_cast<double>(draw >> 16 * piece & 0xffff) - 32767.5;
    const double deviation = std::sqrt((65536.0 * 65536 - 1) / 3);
    EXPECT_NEAR(noise_at(key, place), sum / deviation, 1e-6);
  }
}

TEST(Noise, IsWhite) {
  at::Tensor noise = at::empty({100'000}, at::kDouble);
  for (int64_t t = 0; t < noise.size(0); ++t) noise[t] = noise_at(42, static_cast<uint64_t>(t));
  EXPECT_NEAR(noise.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(noise.square().mean().item<double>(), 1, 0.02);
  for (const int64_t lag : {1, 2, 64})
    EXPECT_NEAR((noise.slice(0, lag) * noise.slice(0, 0, -lag)).mean().item<double>(), 0, 0.02);
}

TEST(Noise, HasTheRatioAskedFor) {
  const Waves waves = batch_of({clip(9000, 16000), clip(7000, 16000, 1), at::zeros({500})}, 16000);
  const std::vector<double> ratios{20, -3, 10};
  const Waves out = add_noise(waves, ratios, 5, {1, 2, 3});
  for (size_t row = 0; row < 2; ++row) {
    const double noise = energy(row_of(out, row) - row_of(waves, row));
    EXPECT_NEAR(10 * std::log10(energy(row_of(waves, row)) / noise), ratios[row], 1e-3);
  }
  EXPECT_EQ(row_of(out, 2).count_nonzero().item<int64_t>(), 0) << "silence stays silence";
}

TEST(Noise, DependsOnSeedClipAndDrawAlone) {
  const std::vector<at::Tensor> clips = ragged_clips(16000);
  std::vector<double> ratios(clips.size(), 10.0);
  std::vector<uint64_t> ids;
  for (size_t row = 0; row < clips.size(); ++row) ids.push_back(100 + row);
  expect_rows_alone(clips, 16000, [&](const Waves& waves, size_t first) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
    const std::vector<uint64_t> own(begin,
                                    begin + static_cast<std::ptrdiff_t>(waves.lengths.size()));
    return add_noise(waves, std::vector<double>(own.size(), 10.0), 7, own);
  });
  const Waves waves = batch_of({clips[0]}, 16000);
  const auto noisy = [&](uint64_t seed, uint64_t id, uint64_t draw) {
    return add_noise(waves, {10.0}, seed, {id}, draw).samples;
  };
  EXPECT_TRUE(at::equal(noisy(1, 2, 3), noisy(1, 2, 3)));
  EXPECT_FALSE(at::equal(noisy(1, 2, 3), noisy(9, 2, 3)));
  EXPECT_FALSE(at::equal(noisy(1, 2, 3), noisy(1, 9, 3)));
  EXPECT_FALSE(at::equal(noisy(1, 2, 3), noisy(1, 2, 9)));
}

TEST(PitchShift, EqualsTorchaudio) {
  const at::Tensor expected = fixture("pitch").view({2, -1}), wave = clip(3000, 1000, 4);
  const Waves out = pitch_shift(batch_of({wave, clip(4000, 1000), wave}, 1000), {-5, 1, 4});
  EXPECT_LE(difference(row_of(out, 0), expected[0]), 1e-3);
  EXPECT_LE(difference(row_of(out, 2), expected[1]), 1e-3);
}

TEST(PitchShift, ARowIsWhatItIsAlone) {
  expect_rows_alone(ragged_clips(8000), 8000, [](const Waves& waves, size_t) {
    return pitch_shift(waves, std::vector<double>(waves.lengths.size(), 2.5));
  });
}

TEST(PitchShift, ZeroLeavesARowAsItIs) {
  const Waves waves = batch_of({clip(3000, 8000)}, 8000);
  EXPECT_TRUE(at::equal(pitch_shift(waves, {0}).samples, waves.samples));
}

TEST(PitchShift, RefusesShiftsOutsideReason) {
  const Waves waves = batch_of({clip(3000, 8000)}, 8000);
  const Error error = error_of([&] { pitch_shift(waves, {49}); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_STREQ(error.what(),
               "the pitch cannot be shifted by 49 semitones: at most 48 up or down were expected");
  EXPECT_EQ(error_of([&] { pitch_shift(waves, {NAN}); }).kind(), ErrorKind::config);
}

TEST(Slice, IsAPartOfTheRow) {
  const at::Tensor wave = clip(5000, 16000);
  std::set<int64_t> starts;
  for (uint64_t id = 0; id < 50; ++id) {
    const Sliced out = random_slice(batch_of({wave}, 16000), 700, 3, {id});
    ASSERT_EQ(out.waves.lengths[0], 700);
    EXPECT_TRUE(at::equal(out.waves.samples[0], wave.slice(0, out.starts[0], out.starts[0] + 700)));
    starts.insert(out.starts[0]);
  }
  EXPECT_GT(starts.size(), 40u);
  EXPECT_GE(*starts.begin(), 0);
  EXPECT_LE(*starts.rbegin(), 4300);
}

TEST(Slice, EveryStartIsDrawnToTheLast) {
  std::set<int64_t> starts;
  for (uint64_t draw = 0; draw < 200; ++draw)
    starts.insert(random_slice(batch_of({clip(12, 16000)}, 16000), 10, 1, {5}, draw).starts[0]);
  EXPECT_EQ(starts, (std::set<int64_t>{0, 1, 2}));
}

TEST(Slice, ShorterRowsAreKeptAndFilledUp) {
  const Sliced out = random_slice(batch_of({clip(5, 16000), clip(0, 16000)}, 16000), 8, 1, {1, 2});
  EXPECT_EQ(out.waves.samples.sizes(), (std::vector<int64_t>{2, 8}));
  EXPECT_EQ(out.waves.lengths, (std::vector<int64_t>{5, 0}));
  EXPECT_EQ(out.starts, (std::vector<int64_t>{0, 0}));
  EXPECT_TRUE(at::equal(row_of(out.waves, 0), clip(5, 16000)));
  EXPECT_EQ(beyond_row(out.waves, 0).count_nonzero().item<int64_t>(), 0);
}

TEST(Slice, DoesNotDependOnTheBatch) {
  const std::vector<at::Tensor> clips = ragged_clips(16000);
  expect_rows_alone(clips, 16000, [](const Waves& waves, size_t first) {
    std::vector<uint64_t> ids;
    for (size_t row = 0; row < waves.lengths.size(); ++row) ids.push_back(first + row);
    return random_slice(waves, 333, 11, ids).waves;
  });
}

TEST(Augment, CountsThatDifferAreOurMistake) {
  const Waves waves = batch_of({clip(10, 16000), clip(10, 16000)}, 16000);
  const auto sentence = [](const std::function<void()>& work) {
    const Error error = error_of(work);
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    return std::string(error.what());
  };
  EXPECT_EQ(sentence([&] { pitch_shift(waves, {1}); }),
            "pitch_shift was given 1 values for 2 rows");
  EXPECT_EQ(sentence([&] {
              add_noise(waves, {1, 2}, 0, {1});
            }),
            "add_noise was given 1 values for 2 rows");
  EXPECT_EQ(sentence([&] {
              add_noise(waves, {1}, 0, {1, 2});
            }),
            "add_noise was given 1 values for 2 rows");
  EXPECT_EQ(sentence([&] { random_slice(waves, 5, 0, {1}); }),
            "random_slice was given 1 ids for 2 rows and a length of 5");
}

}  // namespace tandem::tests
