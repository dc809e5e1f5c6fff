#include "data/corpus/speakers.h"

#include <gtest/gtest.h>

#include "support/captured.h"

namespace tandem {
namespace {

TEST(Speakers, AreReadFromIdsByTheRuleOfTheOriginals) {
  const SpeakerRule rule;
  EXPECT_EQ(rule.speaker_of("p248_065_mic1").name, "p248");
  EXPECT_EQ(rule.speaker_of("en_spk3_001").name, "spk3");
  EXPECT_EQ(rule.speaker_of("set_speakerA_x").name, "speakerA");
  EXPECT_EQ(rule.speaker_of("clip_0012_a").name, "0012");
  EXPECT_EQ(rule.speaker_of("part_one").name, "part");
  EXPECT_EQ(rule.speaker_of("LJ016-0244").name, "LJ016-0244");
  EXPECT_EQ(rule.speaker_of("folder/p1_x").name, "p1");
  EXPECT_EQ(rule.speaker_of("").name, "");
}

TEST(Speakers, FollowAPattern) {
  const SpeakerRule rule("^([A-Z]+)-");
  EXPECT_EQ(rule.speaker_of("ANN-p1_2").name, "ANN");
  EXPECT_EQ(rule.speaker_of("x_p1").name, "p1")
      << "where the pattern does not match, the rule does";
}

TEST(Speakers, RefuseAPatternThatIsNone) {
  EXPECT_EQ(error_of([] { SpeakerRule("(p"); }).kind(), ErrorKind::usage);
  EXPECT_STREQ(error_of([] { SpeakerRule("p[0-9]+"); }).what(),
               "the pattern `p[0-9]+` has no group; expected the speaker in parentheses");
}

std::vector<FoundClip> clips(const std::vector<std::string>& ids) {
  std::vector<FoundClip> found(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) found[i].clip.id = ids[i];
  return found;
}

TEST(Speakers, AreOnlyThoseWithSeveralClips) {
  auto found = clips({"p1_001", "p1_002", "audio_7", "audio_8", "LJ-1"});
  EXPECT_EQ(guess_speakers(found, SpeakerRule()), 1);
  EXPECT_EQ(found[0].clip.speaker, "p1");
  EXPECT_EQ(found[2].clip.speaker, "");
  EXPECT_EQ(found[4].clip.speaker, "");
}

TEST(Speakers, AreReadFromTheirPlaceOnlyWhereEveryClipHasOne) {
  auto found = clips({"ann_a", "ann_b", "bob_a", "bob_b"});
  EXPECT_EQ(guess_speakers(found, SpeakerRule()), 2);
  EXPECT_EQ(found[3].clip.speaker, "bob");
  auto words = clips({"dictate_forhelp", "dictate_pause", "goodbye"});
  EXPECT_EQ(guess_speakers(words, SpeakerRule()), 0);
  EXPECT_EQ(words[0].clip.speaker, "");
}

TEST(Speakers, ThatAreKnownStay) {
  auto found = clips({"p1_001", "p1_002", "p1_003"});
  found[0].clip.speaker = "Ann";
  guess_speakers(found, SpeakerRule());
  EXPECT_EQ(found[0].clip.speaker, "Ann");
  EXPECT_EQ(found[2].clip.speaker, "p1");
}

}  // namespace
}  // namespace tandem
