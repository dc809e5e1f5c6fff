#include "audio/signal/resample.h"

#include <thread>

#include "audio/signal/clips.h"
#include "support/captured.h"

namespace tandem::tests {

TEST(Resample, EqualsTorchaudio) {
  const std::vector<std::tuple<int, int, int64_t>> cases{
      {16000, 22050, 501}, {22050, 16000, 333}, {8000, 22050, 200},  {44100, 22050, 777},
      {48000, 22050, 901}, {24000, 22050, 450}, {11025, 48000, 101}, {192000, 16000, 5001}};
  for (const auto& [from, to, samples] : cases) {
    const std::string name = fmt::format("resample_{}_{}_{}", from, to, samples);
    const Waves out = resample(batch_of({clip(9000, from, 9), clip(samples, from)}, from), to);
    EXPECT_EQ(out.sample_rate, to);
    EXPECT_LE(difference(row_of(out, 1), fixture(name)), 1e-6) << name;
  }
}

TEST(Resample, ARowIsWhatItIsAlone) {
  for (const auto& [from, to] : {std::pair{16000, 22050}, {48000, 22050}, {22050, 192000}})
    expect_rows_alone(ragged_clips(from), from,
                      [to = to](const Waves& waves, size_t) { return resample(waves, to); });
}

TEST(Resample, AClipByPointerIsTheRow) {
  const at::Tensor wave = clip(1234, 24000);
  at::Tensor out = at::empty({resampled_length(1234, 24000, 22050)});
  resample_clip(wave.const_data_ptr<float>(), 1234, 24000, 22050, out.mutable_data_ptr<float>());
  EXPECT_TRUE(at::equal(out, row_of(resample(batch_of({wave}, 24000), 22050), 0)));
  resample_clip(wave.const_data_ptr<float>(), 1000, 8000, 8000, out.mutable_data_ptr<float>());
  EXPECT_TRUE(at::equal(out.slice(0, 0, 1000), wave.slice(0, 0, 1000)));
}

TEST(Resample, LengthsAreRoundedUpExactly) {
  EXPECT_EQ(resampled_length(0, 16000, 22050), 0);
  EXPECT_EQ(resampled_length(1, 192000, 8000), 1);
  EXPECT_EQ(resampled_length(24, 192000, 8000), 1);
  EXPECT_EQ(resampled_length(25, 192000, 8000), 2);
  // In float32, as torchaudio computes it, this is one less.
  EXPECT_EQ(resampled_length(320 * 300 + 1, 16000, 22050), 441 * 300 + 2);
  EXPECT_EQ(resampled_length(int64_t{768'000} * 86'400, 768'000, 767'999),
            int64_t{767'999} * 86'400);
}

TEST(Resample, AToneKeepsItsHeightAtRatesWithoutCommonFactor) {
  const int from = 7919, to = 6007;
  const auto tone = [](int64_t samples, int rate) {
    return at::sin(at::arange(samples, at::kDouble) * (2 * std::numbers::pi * 440 / rate))
        .to(at::kFloat);
  };
  const Waves out = resample(batch_of({tone(4000, from)}, from), to);
  const at::Tensor expected = tone(out.lengths[0], to);
  EXPECT_LE(difference(row_of(out, 0).slice(0, 50, -50), expected.slice(0, 50, -50)), 5e-3);
}

TEST(Resample, EqualRatesGiveTheSameTensor) {
  const Waves waves = batch_of({clip(100, 8000)}, 8000);
  EXPECT_TRUE(resample(waves, 8000).samples.is_same(waves.samples));
}

TEST(Resample, TablesMayBeMadeByManyThreads) {
  std::vector<std::shared_ptr<const ResampleTable>> seen(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < seen.size(); ++i)
    threads.emplace_back([&seen, i] { seen[i] = resample_table(12345, 22051); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& table : seen) EXPECT_EQ(table, seen[0]);
}

TEST(Resample, OldTablesAreForgottenNotWrong) {
  const auto before = resample_table(9001, 9002);
  for (int rate = 3000; rate < 3100; ++rate) resample_table(rate, 2999);
  const auto after = resample_table(9001, 9002);
  EXPECT_NE(before, after);
  EXPECT_EQ(before->coefficients, after->coefficients);
}

TEST(Resample, RefusesRatesOutsideReason) {
  const Error low = error_of([] { resampled_length(10, 0, 8000); });
  EXPECT_EQ(low.kind(), ErrorKind::data);
  EXPECT_STREQ(
      low.what(),
      "cannot resample from 0 Hz to 8000 Hz: sample rates from 1 to 768000 Hz were expected");
  const Waves waves = batch_of({clip(10, 8000)}, 8000);
  EXPECT_EQ(error_of([&] { resample(waves, 768'001); }).kind(), ErrorKind::data);
  EXPECT_EQ(error_of([&] { resample(waves, -5); }).kind(), ErrorKind::data);
}

TEST(Resample, WavesThatContradictThemselvesAreOurMistake) {
  const auto sentence = [](const Waves& waves) {
    const Error error = error_of([&] { resample(waves, 16000); });
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    return std::string(error.what());
  };
  const at::Tensor rows = at::zeros({2, 5});
  EXPECT_EQ(sentence({rows, {5}, 8000}), "resample was given waves of 2 rows with 1 lengths");
  EXPECT_EQ(sentence({rows, {5, 6}, 8000}),
            "resample was given waves with a row of 6 samples in 5 places");
  EXPECT_EQ(sentence({rows, {5, 5}, 0}), "resample was given waves at 0 Hz");
  EXPECT_EQ(sentence({rows.to(at::kDouble), {5, 5}, 8000}),
            "resample was given waves that are not a float32 tensor [rows, samples]");
  EXPECT_EQ(sentence({{}, {}, 8000}),
            "resample was given waves that are not a float32 tensor [rows, samples]");
}

}  // namespace tandem::tests
