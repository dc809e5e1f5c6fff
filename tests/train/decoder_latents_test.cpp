#include "train/stages/decoder_latents.h"

#include <gtest/gtest.h>

#include "nn/tensors.h"
#include "train/decoder_making.h"
#include "train/stages/counted_tensor.h"
#include "util/counted_random.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

DecoderLatents narrow_latents(double share) {
  const Xtts xtts = narrow_xtts();
  return DecoderLatents(xtts.gpt, xtts.conditioning,
                        {.own_codes_share = share, .temperature = 0.75});
}

SpokenRows rows_from(const Batch& batch) {
  return {batch.fields[gpt_text],         batch.fields[gpt_text_lengths],
          batch.fields[gpt_codes],        batch.fields[gpt_code_lengths],
          batch.fields[gpt_conditioning], batch.fields[gpt_conditioning_lengths]};
}

const std::vector<MadeClip> three_clips{{12, 9, "a"}, {3, 12, "b"}, {7, 1, "c"}};

}  // namespace

TEST(CountedTensor, DrawsWhatTheHostDraws) {
  const at::Tensor ids = at::tensor({int64_t{0}, int64_t{5}, int64_t{-77}});
  const at::Tensor found = counted_draw(9, "purpose", ids, at::scalar_tensor(4, at::kLong));
  for (int64_t i = 0; i < 3; ++i) {
    const auto id = static_cast<uint64_t>(ids[i].item<int64_t>());
    EXPECT_EQ(static_cast<uint64_t>(found[i].item<int64_t>()), counted_draw(9, "purpose", id, 4));
  }
  const at::Tensor units = counted_units(9, "purpose", at::arange(20000), at::zeros({}, at::kLong));
  EXPECT_GT(number(units.min()), 0);
  EXPECT_LT(number(units.max()), 1);
  EXPECT_NEAR(number(units.mean()), 0.5, 0.01);
}

TEST(CountedTensor, ARowIsKnownByWhatItHolds) {
  const at::Tensor a = whole_numbers("a", {3, 6}, 9), lengths = at::tensor({6, 4, 4}).to(at::kLong);
  const at::Tensor all = row_identity(a, lengths);
  EXPECT_TRUE(same_bits(row_identity(a.narrow(0, 1, 1), lengths.narrow(0, 1, 1)),
                        all.narrow(0, 1, 1).contiguous()));
  at::Tensor other = a.clone();
  other[1][5] = 8;  // padding
  EXPECT_TRUE(same_bits(row_identity(other, lengths), all));
  other[1][3] += 1;
  EXPECT_FALSE(same_bits(row_identity(other, lengths), all));
  // The same codes in another order are another clip.
  EXPECT_FALSE(same_bits(row_identity(a.flip(1), at::full({3}, 6, at::kLong)),
                         row_identity(a, at::full({3}, 6, at::kLong))));
}

// Whatever the padding: as one request gives them when it is decoded.
TEST(DecoderLatents, OfABatchAreThoseOfEachClipAlone) {
  const at::NoGradGuard no_grad;
  const Xtts xtts = narrow_xtts();
  const Batch batch = made_decoder_batch(three_clips, 12);
  const at::Tensor found = narrow_latents(0).teacher_forced(rows_from(batch));
  for (size_t row = 0; row < three_clips.size(); ++row) {
    const auto r = static_cast<int64_t>(row);
    const auto own = [&](size_t field, int64_t count) {
      return numbers(batch.fields[field][r].narrow(0, 0, count));
    };
    const MadeClip& clip = three_clips[row];
    const at::Tensor prefix = xtts.conditioning(values(clip.name + ".mels", {1, 80, 13}));
    const at::Tensor alone =
        xtts.gpt.latents(own(gpt_text, clip.text), own(gpt_codes, clip.codes), prefix);
    EXPECT_LT(largest_difference(found[r].narrow(0, 0, clip.codes), alone[0]), 1e-4) << row;
  }
}

TEST(DecoderLatents, OfOwnCodesDifferAndKeepTheirLength) {
  const at::NoGradGuard no_grad;
  const SpokenRows rows = rows_from(made_decoder_batch(three_clips, 12));
  const at::Tensor step = at::scalar_tensor(3, at::kLong);
  const at::Tensor forced = narrow_latents(0).teacher_forced(rows);
  const at::Tensor own = narrow_latents(1)(rows, step, 1);
  EXPECT_EQ(own.sizes(), forced.sizes());
  EXPECT_LT(largest_difference(own.select(1, 0), forced.select(1, 0)), 1e-5);  // nothing read yet
  for (const int64_t row : {0, 1})
    EXPECT_GT(largest_difference(own[row].narrow(0, 1, 8), forced[row].narrow(0, 1, 8)), 0.01);
  EXPECT_LT(largest_difference(narrow_latents(0)(rows, step, 1), forced), 1e-6);
  EXPECT_GT(largest_difference(narrow_latents(1)(rows, step + 1, 1), own), 0.01);  // other draws
}

// In another company, at another place, of another step: a row's draws are its own.
TEST(DecoderLatents, DrawsBelongToTheRow) {
  const at::NoGradGuard no_grad;
  const DecoderLatents latents = narrow_latents(0.5);
  const at::Tensor step = at::scalar_tensor(8, at::kLong);
  const at::Tensor all = latents(rows_from(made_decoder_batch(three_clips, 12)), step, 1);
  const at::Tensor alone =
      latents(rows_from(made_decoder_batch({three_clips[1], three_clips[0]}, 12)), step, 1);
  EXPECT_LT(largest_difference(alone[0], all[1]), 1e-4);
  EXPECT_LT(largest_difference(alone[1].narrow(0, 0, 9), all[0].narrow(0, 0, 9)), 1e-4);
}

TEST(DecoderLatents, ChoosesTheShareOfClips) {
  const at::Tensor rows = mix_bits(at::arange(8000)), step = at::scalar_tensor(5, at::kLong);
  EXPECT_NEAR(number(narrow_latents(0.25).chosen(rows, step, 1).to(at::kFloat).mean()), 0.25, 0.02);
  EXPECT_EQ(number(narrow_latents(1).chosen(rows, step, 1).to(at::kFloat).mean()), 1);
  EXPECT_FALSE(narrow_latents(0.5)
                   .chosen(rows, step, 1)
                   .equal(narrow_latents(0.5).chosen(rows, step + 1, 1)));
}

TEST(DecoderLatents, DrawsCodesAsOftenAsTheModelExpectsThem) {
  const at::NoGradGuard no_grad;
  const Xtts xtts = narrow_xtts();
  const at::Tensor latent = values("latent", {1, 1, 40});
  at::Tensor logits = xtts.gpt.audio_head(latent)[0][0];
  logits.slice(0, 32).fill_(-1e9);  // start and stop are never spoken
  const at::Tensor expected = at::softmax(logits / 0.75, 0);
  const int64_t rows = 20000;
  const at::Tensor codes = narrow_latents(1).draw_codes(
      latent.expand({rows, 1, 40}), mix_bits(at::arange(rows)), at::ones({}, at::kLong), 1);
  const at::Tensor counts = at::bincount(codes.view({-1}), {}, 34).to(at::kFloat) / rows;
  EXPECT_EQ(number(counts.slice(0, 32).sum()), 0);
  EXPECT_LT(largest_difference(counts, expected), 0.015);
  EXPECT_GT(number(expected.max()), 0.04);  // the test could tell it from an even spread
}

TEST(DecoderLatents, SaysWhichPositionsAreMissing) {
  const DecoderLatents latents = narrow_latents(0);
  Batch batch = made_decoder_batch(three_clips, 12);
  batch.fields[gpt_text] = at::ones({3, 21}, at::kLong);
  Thrown thrown = thrown_by([&] { latents.teacher_forced(rows_from(batch)); });
  EXPECT_EQ(thrown.kind, "data");
  EXPECT_TRUE(contains(thrown.sentence, "needs 23 positions of text; this model has 22"))
      << thrown.sentence;
  thrown =
      thrown_by([&] { latents.teacher_forced(rows_from(made_decoder_batch(three_clips, 44))); });
  EXPECT_TRUE(contains(thrown.sentence, "needs 44 positions of audio; this model has 43"))
      << thrown.sentence;
  EXPECT_TRUE(contains(thrown.hint, "tandem prepare")) << thrown.hint;
}

}  // namespace tandem::tests
