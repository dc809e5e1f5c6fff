#include "models/xtts/speaker_encoder.h"

#include <gtest/gtest.h>

#include "audio/signal/mel.h"
#include "models/xtts_narrow.h"
#include "nn/tensors.h"

namespace tandem::tests {

// From sound: pre-emphasis, Hamming window, logarithm and instance norm are in it.
TEST(SpeakerEncoder, GivesCoquisEmbedding) {
  const at::NoGradGuard no_grad;
  const SpeakerEncoder encoder = narrow_speaker_encoder();
  auto expected = xtts_fixture("speaker");
  for (const int64_t samples : {4000, 16001}) {
    const std::string of = "." + std::to_string(samples);
    const at::Tensor audio = values("audio" + of, {2, samples}, 0.5);
    const at::Tensor mels = log_mel({audio, {samples, samples}, 16000}, mel_speaker_encoder());
    const at::Tensor found = encoder(mels);
    EXPECT_LT(largest_difference(found, expected.at("embedding" + of)), 1e-5) << samples;
    EXPECT_LT(largest_difference(found.norm(2, 1), at::ones({2})), 1e-6);
  }
}

TEST(SpeakerEncoder, ReadsItsSizesFromTheShapes) {
  const SpeakerEncoder encoder = narrow_speaker_encoder();
  EXPECT_EQ(encoder.size.widths, (std::vector<int64_t>{8, 16, 16, 24}));
  EXPECT_EQ(encoder.size.blocks, (std::vector<int64_t>{2, 1, 2, 1}));
  EXPECT_EQ(encoder.size.embedding, 12);
}

}  // namespace tandem::tests
