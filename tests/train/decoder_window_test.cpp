#include "train/stages/decoder_window.h"

#include <gtest/gtest.h>

#include "nn/tensors.h"
#include "train/decoder_making.h"

namespace tandem::tests {
namespace {

int64_t at_row(const at::Tensor& tensor, int64_t row) { return tensor[row].item<int64_t>(); }

}  // namespace

TEST(DecoderWindow, LiesInsideTheClipWithItsContext) {
  const WindowSize size{.judged = 10, .computed = 16, .context = 3, .hop = 4};
  for (const double unit : {0.0, 0.3, 0.999}) {
    const at::Tensor frames = at::tensor({int64_t{30}, int64_t{16}, int64_t{10}, int64_t{0}});
    const SoundWindow window =
        place_window(size, frames, frames * 4 - 2, at::full({4}, unit, at::kFloat));
    for (const int64_t row : {0, 1}) {
      const int64_t first = at_row(window.first, row), from = at_row(window.computed, row);
      const int64_t all = at_row(frames, row);
      EXPECT_TRUE(from >= 0 && from + 16 <= all);
      EXPECT_TRUE(first >= from && first + 10 <= from + 16);
      EXPECT_TRUE(from == 0 || first - from >= 3);
      EXPECT_TRUE(from + 16 == all || from + 16 - (first + 10) >= 3);
      EXPECT_EQ(at_row(window.valid, row), std::min<int64_t>(40, all * 4 - 2 - first * 4));
    }
    // Shorter than what is computed: without its last three frames. Empty: nothing.
    EXPECT_EQ(at_row(window.first, 2), 0);
    EXPECT_EQ(at_row(window.valid, 2), 7 * 4);
    EXPECT_EQ(at_row(window.valid, 3), 0);
  }
  // Of such a clip the window is drawn where it counts.
  const SoundWindow shorter = place_window(size, at::full({1}, 15, at::kLong),
                                           at::full({1}, 60, at::kLong), at::full({1}, 0.9999));
  EXPECT_EQ(at_row(shorter.first, 0), 2);
  EXPECT_EQ(at_row(shorter.valid, 0), 40);
  const SoundWindow last = place_window(size, at::full({1}, 30, at::kLong),
                                        at::full({1}, 120, at::kLong), at::full({1}, 0.9999));
  EXPECT_EQ(at_row(last.first, 0), 20);
  EXPECT_EQ(at_row(last.computed, 0), 14);
}

TEST(DecoderWindow, CutsRowsAtTheirOwnPlaces) {
  const at::Tensor waves = at::arange(12, at::kFloat).view({2, 6});
  const at::Tensor cut = cut_rows(waves, at::tensor({int64_t{1}, int64_t{4}}), 3);
  EXPECT_TRUE(cut.equal(at::tensor({1.f, 2.f, 3.f, 10.f, 11.f, 0.f}).view({2, 3})));
  const at::Tensor quiet = silence_beyond(cut, at::tensor({int64_t{2}, int64_t{0}}));
  EXPECT_TRUE(quiet.equal(at::tensor({1.f, 2.f, 0.f, 0.f, 0.f, 0.f}).view({2, 3})));
}

// What is judged is what the whole clip sounds like there, and beside it stands the recording.
TEST(DecoderWindow, EqualsThePassOverTheWholeClip) {
  const at::NoGradGuard no_grad;
  const Xtts xtts = narrow_xtts();
  const DecoderLearner learner = narrow_decoder({.segment_codes = 4, .own_codes_share = 0});
  const std::vector<MadeClip> clips{{12, 20, "a"}, {3, 15, "b"}, {7, 6, "c"}};
  const Batch batch = made_decoder_batch(clips, 20);
  std::vector<int64_t> starts;
  for (int64_t step = 1; step <= 6; ++step) {
    const auto spoken = learner.speak_window(batch, decoder_step(step));
    ASSERT_EQ(spoken.generated.sizes(), (Shape{3, xtts.vocoder.frames_of(4) * 256}));
    for (size_t row = 0; row < clips.size(); ++row) {
      const auto r = static_cast<int64_t>(row);
      const auto own = [&](size_t field, int64_t count) {
        return numbers(batch.fields[field][r].narrow(0, 0, count));
      };
      const at::Tensor prefix = xtts.conditioning(values(clips[row].name + ".mels", {1, 80, 13}));
      const at::Tensor latents = xtts.gpt.latents(own(gpt_text, clips[row].text),
                                                  own(gpt_codes, clips[row].codes), prefix);
      const at::Tensor whole =
          xtts.vocoder(latents, batch.fields[decoder_speakers].narrow(0, r, 1))[0];
      // Where the window lies, the recording tells.
      const at::Tensor wave = batch.fields[decoder_waves][r];
      const int64_t valid = at_row(spoken.valid, r);
      int64_t start = -1;
      for (int64_t at = 0; at + valid <= whole.size(0) && start < 0; at += 256)
        if (wave.narrow(0, at, valid).equal(spoken.recorded[r].narrow(0, 0, valid))) start = at;
      ASSERT_GE(start, 0) << row;
      if (row == 0) starts.push_back(start);
      EXPECT_GT(decibels(spoken.generated[r].narrow(0, 0, valid), whole.narrow(0, start, valid)),
                80)
          << row;
      EXPECT_EQ(number(spoken.generated[r].slice(0, valid).abs().sum()), 0);
    }
  }
  std::sort(starts.begin(), starts.end());
  EXPECT_GE(std::unique(starts.begin(), starts.end()) - starts.begin(), 3);  // another each step
}

TEST(DecoderWindow, WholeClipsAreSpokenFromEndToEnd) {
  const at::NoGradGuard no_grad;
  const DecoderLearner learner = narrow_decoder();
  const Batch batch = made_decoder_batch({{5, 12, "a"}, {5, 9, "b"}, {0, 0, "none"}}, 12);
  const auto spoken = learner.speak_whole(batch);
  const Vocoder vocoder = narrow_vocoder();
  EXPECT_EQ(at_row(spoken.valid, 0), 12 * 1114 - 300);
  EXPECT_EQ(at_row(spoken.valid, 1), (vocoder.frames_of(9) - 13) * 256);
  EXPECT_EQ(at_row(spoken.valid, 2), 0);
  EXPECT_TRUE(spoken.recorded[0]
                  .narrow(0, 0, 5000)
                  .equal(batch.fields[decoder_waves][0].narrow(0, 0, 5000)));
}

}  // namespace tandem::tests
