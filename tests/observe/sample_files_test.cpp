#include "observe/sample_files.h"

#include <gtest/gtest.h>

#include <cmath>

#include "audio/file/audio_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

SampleReport sample_of(int64_t step, const std::string& name) {
  return {.step = step,
          .name = name,
          .wave = {0, 0.5F, -0.5F, 0.25F},
          .rate = 22050,
          .mel = {1, 2, 3, 4, 5, 6},
          .mels = 2,
          .frames = 3,
          .text = "some words"};
}

}  // namespace

TEST(SampleFiles, AreSoundPictureAndText) {
  const TestFolder run;
  const WrittenSample written = write_sample(run.path(), sample_of(50, "validation/1"));
  const auto folder = run / "samples" / "step-50";
  EXPECT_EQ(contents(folder / "validation_1.wav"), written.wav);
  EXPECT_EQ(contents(folder / "validation_1.png"), written.png);
  EXPECT_EQ(contents(folder / "validation_1.txt"), "some words\n");
  const auto sound = open_audio({(folder / "validation_1.wav").string()});
  EXPECT_EQ(sound->info().frames, 4);
  EXPECT_EQ(sound->info().sample_rate, 22050);
  float samples[4];
  sound->read_mono(0, 4, samples);
  EXPECT_EQ(samples[1], 0.5F);
  EXPECT_EQ(written.width, 240);
  EXPECT_EQ(written.height, 160);
}

TEST(SampleFiles, WithoutAPartHaveNoSuchFile) {
  const TestFolder run;
  const WrittenSample written =
      write_sample(run.path(), {.step = 1, .name = "only", .text = "words"});
  EXPECT_TRUE(written.wav.empty() && written.png.empty());
  const auto found = find_samples(run.path());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].wav.empty() && found[0].png.empty());
  EXPECT_EQ(found[0].txt, run / "samples" / "step-1" / "only.txt");
}

TEST(SampleFiles, SoundThatIsNotFiniteBecomesSilence) {
  const TestFolder run;
  SampleReport sample = sample_of(1, "a");
  sample.wave[1] = NAN;
  sample.wave[2] = INFINITY;
  write_sample(run.path(), sample);
  float samples[4];
  open_audio({(run / "samples/step-1/a.wav").string()})->read_mono(0, 4, samples);
  EXPECT_EQ(samples[1], 0);
  EXPECT_EQ(samples[2], 0);
  EXPECT_EQ(samples[3], 0.25F);
}

TEST(SampleFiles, NamesCannotLeaveTheFolder) {
  EXPECT_EQ(sample_file_name("validation/1"), "validation_1");
  EXPECT_EQ(sample_file_name("../../etc/x"), "_.._.._etc_x");
  EXPECT_EQ(sample_file_name(".hidden"), "_.hidden");
  EXPECT_EQ(sample_file_name(""), "_");
  EXPECT_EQ(sample_file_name("a b<c>\"\n"), "a_b_c___");
  EXPECT_EQ(sample_file_name("слово"), "слово");
  EXPECT_EQ(sample_file_name(std::string(500, 'x')).size(), 120U);
}

TEST(SampleFiles, AreFoundByStepAndName) {
  const TestFolder run;
  for (const int64_t step : {100, 9}) {
    write_sample(run.path(), sample_of(step, "b"));
    write_sample(run.path(), sample_of(step, "a"));
  }
  run.write("samples/step-x/a.wav", "");
  run.write("samples/step-9/.draft-7-c.wav", "cut off");
  run.write("samples/step-9/notes", "neither");
  std::vector<std::string> found;
  for (const SampleFiles& files : find_samples(run.path()))
    found.push_back(std::to_string(files.step) + files.name);
  EXPECT_EQ(found, (std::vector<std::string>{"9a", "9b", "100a", "100b"}));
  EXPECT_TRUE(find_samples(run / "nothing").empty());
}

TEST(SampleFiles, ThatCannotBeWrittenAreAnIoError) {
  const TestFolder run;
  put(run / "samples", "");
  const Thrown thrown = thrown_by([&] { write_sample(run.path(), sample_of(1, "a")); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.sentence, (run / "samples").string())) << thrown.sentence;
}

}  // namespace tandem::tests
