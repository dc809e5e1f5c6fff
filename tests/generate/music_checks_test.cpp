#include "generate/music_checks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tandem/error.h"

namespace tandem {
namespace {

MusicgenConfig checked_config() {
  MusicgenConfig config;
  config.text.vocabulary = 50;
  config.decoder.codebooks = 4;
  config.decoder.vocabulary = 10;
  return config;
}

// The sentence and its kind.
std::pair<ErrorKind, std::string> refusal(const std::vector<MusicRequest>& batch,
                                          const MusicOptions& options = {.longest_text = 6}) {
  try {
    check_music_batch(batch, options, checked_config());
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {ErrorKind::internal, "nothing was wrong"};
}

using Refusal = std::pair<ErrorKind, std::string>;

}  // namespace

TEST(MusicChecks, GivesTheFramesOfThePrompts) {
  const MusicRequest with{.text_ids = {3, 1}, .prompt = at::zeros({4, 7}, at::kLong)};
  EXPECT_EQ(check_music_batch({with, with}, {.longest_text = 6}, checked_config()), 7);
  EXPECT_EQ(check_music_batch({{.text_ids = {3, 1}}, {}}, {.longest_text = 6}, checked_config()),
            0);
}

TEST(MusicChecks, RefusesCaptionsTheModelCannotRead) {
  EXPECT_EQ(refusal({{.text_ids = {1}}, {.text_ids = {1, 2, 3, 4, 5, 6, 7}}}),
            Refusal(ErrorKind::data, "the caption of clip 1 has 7 ids; expected at most 6"));
  EXPECT_EQ(refusal({{.text_ids = {1, 50}}}),
            Refusal(ErrorKind::data,
                    "the caption of clip 0 has the id 50; the text encoder knows 0 to 49"));
}

TEST(MusicChecks, RefusesPromptsThatDoNotFit) {
  const auto prompt = [](int64_t codebooks, int64_t frames, int64_t code) {
    return MusicRequest{.text_ids = {1}, .prompt = at::full({codebooks, frames}, code, at::kLong)};
  };
  EXPECT_EQ(refusal({prompt(4, 5, 1), prompt(4, 6, 1)}),
            Refusal(ErrorKind::data,
                    "the prompt of clip 1 has 6 frames, that of clip 0 5; prompts of a batch are "
                    "of one length"));
  EXPECT_EQ(refusal({prompt(3, 5, 1)}),
            Refusal(ErrorKind::data, "the prompt of clip 0 has 3 codebooks; the model has 4"));
  EXPECT_EQ(refusal({prompt(4, 5, 10)}),
            Refusal(ErrorKind::data, "the prompt of clip 0 has codes outside 0 to 9"));
}

TEST(MusicChecks, RefusesOptionsWithoutMeaning) {
  const Refusal refused =
      refusal({{.text_ids = {1}}}, {.sampling = {.temperature = 0}, .longest_text = 6});
  EXPECT_EQ(refused, Refusal(ErrorKind::config, "temperature is 0; expected a number above 0"));
}

}  // namespace tandem
