#include "models/xtts/voice.h"

#include <gtest/gtest.h>

#include "audio/file/audio_file.h"
#include "models/xtts_narrow.h"
#include "nn/tensors.h"
#include "util/atomic_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

struct Clips {
  TestFolder folder;
  std::string a = (folder / "a.wav").string(), b = (folder / "b.wav").string(),
              c = (folder / "c.wav").string();
  Clips() {
    write_clip(a, "clip.a", 57330, 2, 44100);
    write_clip(b, "clip.b", 90000, 1, 22050);
    write_clip(c, "clip.c", 96000, 1, 96000);
  }
};

void expect_voice(const Voice& voice, const std::string& name) {
  auto expected = xtts_fixture("voice");
  EXPECT_LT(
      largest_difference(voice.conditioning.unsqueeze(0), expected.at(name + ".gpt_cond_latent")),
      3e-4);
  EXPECT_LT(
      largest_difference(voice.speaker.view({1, -1, 1}), expected.at(name + ".speaker_embedding")),
      1e-5);
}

std::string silent_clip(const TestFolder& folder, int64_t frames) {
  const std::string path = (folder / "quiet.wav").string();
  write_wav(path, std::vector<float>(static_cast<size_t>(frames), 0.0f), 1, 22050,
            SampleFormat::float32);
  return path;
}

}  // namespace

// A stereo clip of 44.1 kHz and a longer one that is cut: embeddings are averaged and not made
// unit length again, the sound is joined, cut to 5 s, and read in pieces of 2 s.
TEST(Voice, OfTwoRecordingsIsCoquis) {
  const Clips clips;
  VoiceSteps steps;
  const Voice voice =
      make_voice(narrow_xtts(), {clips.a, clips.b},
                 {.gpt_cond_len = 5, .gpt_cond_chunk_len = 2, .max_ref_len = 4}, &steps);
  expect_voice(voice, "two");
  EXPECT_LT(number(voice.speaker.norm()), 0.99999);
  EXPECT_EQ(steps.mel_cond_frames, (std::vector<int64_t>{173, 173, 87}));
}

// 4.08 s in pieces of 4 s: the rest is too short to count.
TEST(Voice, LeavesOutARestBelowAThirdOfASecond) {
  const Clips clips;
  VoiceSteps steps;
  expect_voice(make_voice(narrow_xtts(), {clips.b}, {}, &steps), "short_rest");
  EXPECT_EQ(steps.mel_cond_frames.size(), 1u);
}

TEST(Voice, LevelsARecordingOf96Kilohertz) {
  const Clips clips;
  expect_voice(make_voice(narrow_xtts(), {clips.c}, {.sound_norm_refs = true}), "level");
}

TEST(Voice, OfSilenceIsRefused) {
  const TestFolder folder;
  const std::string path = silent_clip(folder, 22050);
  const Thrown thrown = thrown_by([&] { make_voice(narrow_xtts(), {path}, {}); });
  EXPECT_EQ(thrown.kind, "data");
  EXPECT_EQ(thrown.sentence,
            "`" + path + "` is silent: no sample is louder than 0; a voice needs speech");
}

TEST(Voice, OfATenthOfASecondIsRefused) {
  const TestFolder folder;
  const std::string path = (folder / "short.wav").string();
  write_clip(path, "clip.a", 2205, 1, 22050);
  const Thrown thrown = thrown_by([&] { make_voice(narrow_xtts(), {path}, {}); });
  EXPECT_EQ(thrown.kind, "data");
  EXPECT_EQ(thrown.sentence, "`" + path + "` is 0.10 s long; a voice needs 0.33 s at least");
}

TEST(Voice, OfNothingIsRefused) {
  EXPECT_EQ(thrown_by([&] { make_voice(narrow_xtts(), {}, {}); }).kind, "usage");
  EXPECT_THROW(make_voice(narrow_xtts(), {"/no/such.wav"}, {}), AudioError);
  const Clips clips;
  const Thrown pieces =
      thrown_by([&] { make_voice(narrow_xtts(), {clips.a}, {.gpt_cond_chunk_len = 0.2}); });
  EXPECT_EQ(pieces.sentence, "gpt_cond_chunk_len is 0.2 s; expected more than 0.33 s");
}

TEST(Voice, SavedIsTheSameVoice) {
  const TestFolder folder;
  const Voice voice{values("c", {32, 40}), values("s", {12})};
  save_voice(folder / "me.safetensors", voice, "me");
  const Voice loaded = load_voice(folder / "me.safetensors");
  EXPECT_TRUE(same_bits(loaded.conditioning, voice.conditioning));
  EXPECT_TRUE(same_bits(loaded.speaker, voice.speaker));
  EXPECT_EQ(read_safetensors(folder / "me.safetensors").metadata.at("name"), "me");
}

TEST(Voice, ReadsAllSpeakersOfAFile) {
  const TestFolder folder;
  put(folder / "speakers.safetensors",
      format_safetensors({{"Ana Maria/gpt_cond_latent", values("a", {1, 32, 40})},
                          {"Ana Maria/speaker_embedding", values("b", {1, 12, 1})},
                          {"Bo/gpt_cond_latent", values("c", {1, 32, 40})},
                          {"Bo/speaker_embedding", values("d", {1, 12, 1})}},
                         {}));
  const auto voices = load_speakers(folder / "speakers.safetensors");
  ASSERT_EQ(voices.size(), 2u);
  EXPECT_TRUE(same_bits(voices.at("Ana Maria").speaker, values("b", {12})));
  EXPECT_TRUE(same_bits(voices.at("Bo").conditioning, values("c", {32, 40})));
}

TEST(Voice, AFileThatHoldsNoneIsCorrupt) {
  const TestFolder folder;
  const std::string path = (folder / "x.safetensors").string();
  put(path, format_safetensors({{"gpt_cond_latent", values("a", {1, 32, 40})}}, {}));
  const Thrown missing = thrown_by([&] { load_voice(path); });
  EXPECT_EQ(missing.kind, "corrupt");
  EXPECT_EQ(missing.sentence, "`" + path + "` holds no voice: `speaker_embedding` is missing");
  EXPECT_TRUE(contains(thrown_by([&] { load_speakers(path); }).sentence, "holds no voices"));
  put(path, format_safetensors({{"gpt_cond_latent", values("a", {32, 40})},
                                {"speaker_embedding", values("a", {3, 4})}},
                               {}));
  EXPECT_TRUE(contains(thrown_by([&] { load_voice(path); }).sentence, "are no voice"));
  put(path, format_safetensors({{"gpt_cond_latent", values("a", {32, 40})},
                                {"speaker_embedding", at::full({12}, NAN)}},
                               {}));
  EXPECT_EQ(thrown_by([&] { load_voice(path); }).kind, "corrupt");
}

TEST(Voice, OfAnotherModelIsRefused) {
  const Voice voice{values("c", {32, 64}), values("s", {12})};
  const Thrown thrown = thrown_by([&] { check_voice(narrow_xtts(), voice, "me"); });
  EXPECT_EQ(thrown.kind, "data");
  EXPECT_EQ(thrown.sentence, "the voice `me` has the widths 64 and 12; this model needs 40 and 12");
  check_voice(narrow_xtts(), {values("c", {32, 40}), values("s", {12})}, "me");
}

}  // namespace tandem::tests
