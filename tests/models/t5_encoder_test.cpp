#include "models/musicgen/t5_encoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/musicgen/musicgen.h"
#include "models/musicgen_expected.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

const std::vector<std::string>& captions() {
  static const std::vector<std::string> texts = {
      "80s pop track with bassy drums and synth", "a slow piano",
      "Energetic techno: acid bass lines, a driving beat; dark mood.", ""};
  return texts;
}

std::vector<int64_t> row(const at::Tensor& ids, const at::Tensor& mask, int64_t i) {
  const at::Tensor kept = ids[i].masked_select(mask[i].to(at::kBool)).to(at::kLong).contiguous();
  return {kept.data_ptr<int64_t>(), kept.data_ptr<int64_t>() + kept.numel()};
}

at::Tensor as_ids(const std::vector<int64_t>& ids) {
  return at::tensor(ids, at::kLong).unsqueeze(0);
}

}  // namespace

TEST(T5Encoder, IdsAndStatesAreThoseOfTransformers) {
  for (const std::string& name : musicgen_fixtures()) {
    const Musicgen model = Musicgen::load(musicgen_fixture(name));
    auto expected = musicgen_expected(name);
    for (const std::string side : {"right", "left"}) {
      const at::Tensor ids = expected["text_ids_" + side], mask = expected["text_mask_" + side];
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(model.text_ids(captions()[static_cast<size_t>(i)]), row(ids, mask, i))
            << name << " " << side << " " << i;
      }
      EXPECT_LE(farthest(model.text(ids, mask), expected["text_states_" + side]), 1e-4)
          << name << " " << side;
    }
    const at::Tensor ids = as_ids(model.text_ids(captions()[1]));
    EXPECT_LE(farthest(model.text(ids, at::ones_like(ids)), expected["text_states_alone"]), 1e-4);
    EXPECT_EQ(model.text(ids, at::ones_like(ids)).scalar_type(), at::kFloat);
  }
}

// Positions are relative: what stands where matters only through the mask.
TEST(T5Encoder, PaddingOnEitherSideChangesNothingOfWhatCounts) {
  const Musicgen model = Musicgen::load(musicgen_fixture("tiny"));
  const at::Tensor ids = as_ids(model.text_ids(captions()[1]));
  const at::Tensor ones = at::ones_like(ids), alone = model.text(ids, ones);
  const int64_t length = ids.size(1);
  for (const bool left : {true, false}) {
    const std::vector<int64_t> pad = left ? std::vector<int64_t>{5, 0} : std::vector<int64_t>{0, 5};
    const at::Tensor states =
        model.text(at::constant_pad_nd(ids, pad), at::constant_pad_nd(ones, pad));
    EXPECT_LE(farthest(states.narrow(1, left ? 5 : 0, length), alone), 1e-5);
    const at::Tensor unmasked =
        model.text(at::constant_pad_nd(ids, pad), at::ones({1, length + 5}));
    EXPECT_GE(farthest(unmasked.narrow(1, left ? 5 : 0, length), alone), 1e-2)
        << "without the mask, padding must be seen";
  }
}

TEST(T5Encoder, ACaptionOfPaddingAloneIsNotNaN) {
  const Musicgen model = Musicgen::load(musicgen_fixture("tiny"));
  const at::Tensor ids = at::zeros({2, 6}, at::kLong);
  const at::Tensor states = model.text(ids, at::zeros({2, 6}));
  EXPECT_TRUE(states.isfinite().all().item<bool>());
}

// T5's own rule in plain numbers: near distances one by one, far ones by logarithm, both ways.
TEST(T5Encoder, FarKeysShareBuckets) {
  T5Encoder encoder = T5Encoder::make(
      {.width = 8, .layers = 1, .heads = 1, .head_width = 4, .inner = 8, .vocabulary = 4}, 3);
  // Only the bias decides where a query looks, and only one bucket is open.
  encoder.blocks[0].query.zero_();
  const at::Tensor same = at::ones({1, 200}, at::kLong), mask = at::ones({1, 200});
  const auto sees = [&](int64_t query, int64_t bucket, int64_t key) {
    encoder.position_bias.zero_();
    encoder.position_bias[bucket][0] = 50;
    at::Tensor changed = same.clone();
    changed[0][key] = 2;
    return farthest(encoder(changed, mask)[0][query], encoder(same, mask)[0][query]) > 1e-4;
  };
  EXPECT_TRUE(sees(0, 16 + 7, 7));
  EXPECT_FALSE(sees(0, 16 + 7, 8));
  EXPECT_TRUE(sees(0, 16 + 8, 8));
  EXPECT_TRUE(sees(0, 16 + 8, 11));
  EXPECT_FALSE(sees(0, 16 + 8, 12));
  EXPECT_FALSE(sees(0, 16 + 15, 90));
  EXPECT_TRUE(sees(0, 16 + 15, 91)) << "the last bucket begins at 8 * 16^(7/8)";
  EXPECT_TRUE(sees(0, 16 + 15, 199));
  EXPECT_TRUE(sees(199, 15, 0)) << "keys before the query have buckets of their own";
  EXPECT_TRUE(sees(199, 7, 192));
  EXPECT_FALSE(sees(199, 7, 191));
}

TEST(T5Encoder, AnEmptyCaptionIsItsEndAlone) {
  const Musicgen model = Musicgen::load(musicgen_fixture("tiny"));
  EXPECT_EQ(model.text_ids(""), std::vector<int64_t>{1});
  EXPECT_EQ(model.text_ids(" \n "), std::vector<int64_t>{1});
}

TEST(T5Encoder, ALongCaptionIsCutBeforeItsEnd) {
  const Musicgen model = Musicgen::load(musicgen_fixture("tiny"));
  const at::Tensor cut = musicgen_expected("tiny")["text_ids_cut"].to(at::kLong).contiguous();
  const std::vector<int64_t> expected(cut.data_ptr<int64_t>(),
                                      cut.data_ptr<int64_t>() + cut.numel());
  EXPECT_EQ(model.text_ids(captions()[2], 7), expected);
  const std::vector<int64_t> whole = model.text_ids(captions()[2]);
  EXPECT_EQ(model.text_ids(captions()[2], static_cast<int64_t>(whole.size())), whole);
  EXPECT_EQ(model.text_ids(captions()[2], 1), std::vector<int64_t>{1});
}

TEST(T5Encoder, RandomModelsReadNoCaptions) {
  const Musicgen model = Musicgen::make("tiny", 1);
  const Thrown thrown = thrown_by([&] { model.text_ids("a"); });
  EXPECT_EQ(thrown.kind, "internal");
  EXPECT_EQ(thrown.sentence, "a MusicGen model of random weights reads no captions");
}

}  // namespace tandem::tests
