// Accuracy and stop accuracy of the GPT, of a model whose likeliest codes are known.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/xtts_narrow.h"
#include "nn/tensors.h"

namespace tandem::tests {
namespace {

constexpr int64_t stop = 33;

// Says `codes[i]` at place i of the sound, whatever it reads: its layers add nothing, its inputs
// tell nothing but the place, and the head looks for that.
XttsGpt saying(const std::vector<int64_t>& codes) {
  XttsGpt gpt = narrow_gpt();
  gpt.audio_embedding.zero_();
  gpt.audio_positions.zero_();
  for (XttsGptBlock& block : gpt.blocks)
    for (at::Tensor* tensor :
         {&block.project_weight, &block.project_bias, &block.contract_weight, &block.contract_bias})
      tensor->zero_();
  for (const LayerNorm& norm : {gpt.last_norm, gpt.final_norm}) {
    norm.weight.fill_(1);
    norm.bias.zero_();
  }
  gpt.audio_head.weight.zero_();
  gpt.audio_head.bias.zero_();
  for (size_t place = 0; place < codes.size(); ++place) {
    const auto at = static_cast<int64_t>(place);
    gpt.audio_positions[at][at] = 1;
    gpt.audio_head.weight[codes[place]][at] = 1;
  }
  return gpt;
}

// Rows of 5 and 3 codes, and one that teaches nothing; 2 more codes stand behind the shorter.
XttsGpt::LearnBatch two_clips() {
  return {
      .text = at::full({3, 4}, 7, at::kLong),
      .text_lengths = at::tensor({4, 2, 0}, at::kLong),
      .codes = at::tensor({1, 2, 3, 4, 5, 1, 9, 3, 4, 5, 1, 2, 3, 4, 5}, at::kLong).view({3, 5}),
      .code_lengths = at::tensor({5, 3, 0}, at::kLong),
      .conditioning = values("cond", {3, 32, 40})};
}

struct Counts {
  double hits, of, stop_hits, stops;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.hits << " of " << counts.of << " codes, " << counts.stop_hits << " of "
             << counts.stops << " stops";
}
Counts counted(const XttsGpt& gpt, const XttsGpt::LearnBatch& batch) {
  const at::NoGradGuard no_grad;
  const XttsGpt::Learned found = gpt.learn(batch);
  return {number(found.audio_hits), number(found.audio_count), number(found.stop_hits),
          number(found.stop_count)};
}

}  // namespace

// Targets: 1 2 3 4 5 stop stop stop stop, and 1 9 3 stop stop stop stop.
TEST(XttsGptHits, AreTheTargetsThatWereTheLikeliestCode) {
  const XttsGpt::LearnBatch batch = two_clips();
  EXPECT_EQ(counted(saying({1, 2, 3, 4, 5, stop, stop, stop, stop, 6}), batch),
            (Counts{9 + 4, 16, 1, 2}))
      << "1 . 3 . . stop stop of the second clip, which was to stop sooner";
  EXPECT_EQ(counted(saying({6, 9, 6, stop, 6, 6, stop, 6, stop, stop}), batch),
            (Counts{2 + 3, 16, 1, 2}))
      << "the first stop alone counts as one, later ones are codes";
  EXPECT_EQ(counted(saying(std::vector<int64_t>(10, stop)), batch), (Counts{8, 16, 2, 2}));
  EXPECT_EQ(counted(saying(std::vector<int64_t>(10, 3)), batch), (Counts{2, 16, 0, 2}));
}

TEST(XttsGptHits, LeaveOutWhatIsNotLearned) {
  XttsGpt::LearnBatch batch = two_clips();
  batch.unlearned = at::tensor({0, 2, 2, 4, 0, 0}, at::kLong).view({3, 2});
  // Learned: 3 4 5 stop stop stop stop, and 1 9 stop stop stop.
  EXPECT_EQ(counted(saying({1, 2, 3, 4, 5, stop, stop, stop, stop, 6}), batch),
            (Counts{7 + 3, 12, 1, 1}));
}

}  // namespace tandem::tests
