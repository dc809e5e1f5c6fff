#include "generate/verify_clips.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "audio/file/write_audio.h"
#include "generate/music_manifest.h"
#include "support/captured.h"
#include "support/temporary_folder.h"

namespace tandem {
namespace {

constexpr int clip_rate = 8000;
constexpr double clip_seconds = 0.5;

// A folder as a run leaves it: clips of half a second, each a tone of its own.
class RunOfClips {
 public:
  explicit RunOfClips(int clips = 3) {
    std::filesystem::create_directories(folder_ / "audio_samples");
    for (int i = 0; i < clips; ++i) {
      const std::string name = "clip" + std::to_string(i);
      write(name + ".wav", sound(200 + 30 * i));
      list({.id = name, .text = "caption", .file = name + ".wav"});
    }
  }

  static std::vector<float> sound(double hertz) {
    std::vector<float> samples(static_cast<size_t>(clip_seconds * clip_rate));
    for (size_t i = 0; i < samples.size(); ++i)
      samples[i] =
          static_cast<float>(0.3 * std::sin(6.283 * hertz * static_cast<double>(i) / 8000));
    return samples;
  }
  std::filesystem::path path(const std::string& file) const {
    return folder_ / "audio_samples" / file;
  }
  void write(const std::string& file, const std::vector<float>& samples) const {
    write_wav(path(file).string(), samples, 1, clip_rate, SampleFormat::float32);
  }
  void list(ClipEntry entry) {
    if (entry.status.empty()) entry.status = "done";
    if (entry.seconds == 0) entry.seconds = clip_seconds;
    entry.channels = 1;
    entry.sample_rate = clip_rate;
    entry.checksum = file_checksum(path(entry.file));
    manifest += to_json_line(entry) + "\n";
  }
  // Lists clip1 again as it is now: whatever it is, nobody changed it behind the manifest's back.
  VerifyReport with_clip1(const std::vector<float>& samples) {
    write("clip1.wav", samples);
    list({.id = "clip1", .text = "caption", .file = "clip1.wav"});
    return verify();
  }
  VerifyReport verify(const VerifyOptions& options = {}) const {
    folder_.write("manifest.jsonl", manifest);
    return verify_clips(folder_.path(), options);
  }
  const TestFolder& folder() const { return folder_; }

  std::string manifest;

 private:
  TestFolder folder_;
};

std::vector<std::string> faults_of(const VerifyReport& report) {
  std::vector<std::string> faults;
  for (const ClipFinding& finding : report.findings)
    faults.push_back(finding.file + ": " + finding.fault + ": " + finding.detail);
  return faults;
}

using Faults = std::vector<std::string>;

}  // namespace

TEST(VerifyClips, AWholeRunIsRight) {
  const VerifyReport report = RunOfClips(5).verify();
  EXPECT_EQ(faults_of(report), Faults{});
  EXPECT_EQ(report.listed, 5);
  EXPECT_EQ(report.right(), 5);
  ASSERT_EQ(report.clips.size(), 5u);
  EXPECT_EQ(report.clips[4].id, "clip4");
  EXPECT_NEAR(report.clips[4].signal.peak, 0.3, 1e-3);
  EXPECT_EQ(report.clips[4].seconds, clip_seconds);
}

TEST(VerifyClips, ProgressReachesTheEnd) {
  int64_t last = 0, all = 0;
  RunOfClips(4).verify({.threads = 2, .on_progress = [&](int64_t done, int64_t total) {
                          EXPECT_GT(done, last);
                          last = done;
                          all = total;
                        }});
  EXPECT_EQ(last, 4);
  EXPECT_EQ(all, 4);
}

TEST(VerifyClips, FindsAMissingClip) {
  RunOfClips run;
  std::filesystem::remove(run.path("clip1.wav"));
  const VerifyReport report = run.verify();
  EXPECT_EQ(faults_of(report), Faults{"clip1.wav: missing: there is no such file"});
  EXPECT_EQ(report.right(), 2);
}

TEST(VerifyClips, FindsExtraFiles) {
  RunOfClips run;
  run.write("more.wav", RunOfClips::sound(900));
  run.folder().write("audio_samples/clip1.wav.part", "half");
  run.folder().write("audio_samples/.draft-hidden", "half");
  EXPECT_EQ(faults_of(run.verify()),
            (Faults{"clip1.wav.part: extra: it is no clip and lies among them",
                    "more.wav: extra: the manifest does not know it"}));
}

TEST(VerifyClips, FindsASoundThatIsNotAsLongAsTheManifestSays) {
  RunOfClips run;
  std::vector<float> samples = RunOfClips::sound(230);
  samples.resize(samples.size() - 80);
  EXPECT_EQ(faults_of(run.with_clip1(samples)),
            Faults{"clip1.wav: length: 0.490 s of sound, 0.500 s in the manifest"});
}

TEST(VerifyClips, FindsAClipThatWasChangedAfterwards) {
  RunOfClips run;
  run.write("clip1.wav", RunOfClips::sound(333));
  const Faults faults = faults_of(run.verify());
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_TRUE(faults[0].starts_with("clip1.wav: changed: its checksum is ")) << faults[0];
}

TEST(VerifyClips, FindsSilence) {
  RunOfClips run;
  EXPECT_EQ(faults_of(run.with_clip1(std::vector<float>(4000))),
            Faults{"clip1.wav: silent: 100 % of it is under -60 dBFS, the peak is 0.0000"});
}

TEST(VerifyClips, FindsClipping) {
  RunOfClips run;
  std::vector<float> samples = RunOfClips::sound(230);
  for (float& x : samples) x *= 5;
  const Faults faults = faults_of(run.with_clip1(samples));
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_TRUE(faults[0].starts_with("clip1.wav: clipped: ")) << faults[0];
  EXPECT_TRUE(faults[0].ends_with("the peak is 1.50")) << faults[0];
}

TEST(VerifyClips, FindsAnOffset) {
  RunOfClips run;
  std::vector<float> samples = RunOfClips::sound(230);
  for (float& x : samples) x -= 0.2F;
  EXPECT_EQ(faults_of(run.with_clip1(samples)), Faults{"clip1.wav: offset: its mean is -0.200"});
}

TEST(VerifyClips, LimitsCanBeMoved) {
  RunOfClips run;
  std::vector<float> samples = RunOfClips::sound(230);
  for (float& x : samples) x = 5 * x + 0.2F;
  run.with_clip1(samples);
  EXPECT_EQ(faults_of(run.verify({.limits = {.full_scale = 1, .offset = 0.5}})), Faults{});
}

TEST(VerifyClips, FindsNaN) {
  RunOfClips run;
  {
    std::fstream file(run.path("clip1.wav"), std::ios::in | std::ios::out | std::ios::binary);
    const uint32_t nan = 0x7fc00000;
    file.seekp(-400, std::ios::end);
    file.write(reinterpret_cast<const char*>(&nan), 4);
  }
  run.list({.id = "clip1", .text = "caption", .file = "clip1.wav"});
  EXPECT_EQ(faults_of(run.verify()), Faults{"clip1.wav: not finite: 1 NaN or infinite samples"});
}

TEST(VerifyClips, FindsTheSameSoundTwice) {
  RunOfClips run;
  EXPECT_EQ(faults_of(run.with_clip1(RunOfClips::sound(200))),
            Faults{"clip1.wav: twice: the same bytes as `clip0.wav`"});
}

TEST(VerifyClips, FindsTwoClipsOfOneFile) {
  RunOfClips run;
  run.list({.id = "other", .text = "another caption", .file = "clip1.wav"});
  EXPECT_EQ(faults_of(run.verify()), Faults{"clip1.wav: twice: several clips have this file"});
}

TEST(VerifyClips, FindsWhatCannotBeRead) {
  RunOfClips run;
  run.folder().write("audio_samples/clip1.wav", "RIFF");
  run.list({.id = "clip1", .text = "caption", .file = "clip1.wav"});
  const Faults faults = faults_of(run.verify());
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_TRUE(faults[0].starts_with("clip1.wav: unreadable: ")) << faults[0];
}

TEST(VerifyClips, FindsAnotherRate) {
  RunOfClips run;
  write_wav(run.path("clip1.wav").string(), std::vector<float>(8000, 0.01F), 1, 16000,
            SampleFormat::float32);
  run.list({.id = "clip1", .text = "caption", .file = "clip1.wav"});
  EXPECT_EQ(faults_of(run.verify()),
            Faults{"clip1.wav: format: 16000 Hz and 1 channels, in the manifest 8000 and 1"});
}

TEST(VerifyClips, TellsWhichClipsFailed) {
  RunOfClips run;
  run.list({.id = "bad", .text = "x", .file = "bad.wav", .status = "failed", .error = "too long"});
  EXPECT_EQ(faults_of(run.verify()), Faults{"bad.wav: failed: too long"});
}

TEST(VerifyClips, AManifestCannotPointOutOfItsFolder) {
  RunOfClips run;
  run.folder().write("secret.wav", "x");
  run.manifest += "{\"file\": \"../secret.wav\"}\n";
  EXPECT_EQ(faults_of(run.verify()), Faults{"../secret.wav: missing: its name leaves the folder"});
}

TEST(VerifyClips, SaysThatARunHasNotEnded) {
  const RunOfClips run;
  run.folder().write("manifest.1-of-3.jsonl", "");
  EXPECT_EQ(faults_of(run.verify()),
            Faults{"manifest.jsonl: unfinished: the run has not ended: manifest.1-of-3.jsonl"});
}

// Its manifest lists what it had made, all of it right.
TEST(VerifyClips, SaysThatAStoppedRunHasNotEnded) {
  const RunOfClips run;
  run.folder().write("run.json", R"({"finished": false})");
  EXPECT_EQ(faults_of(run.verify()),
            Faults{"manifest.jsonl: unfinished: run.json says that clips are still to be made"});
  run.folder().write("run.json", R"({"finished": true})");
  EXPECT_EQ(faults_of(run.verify()), Faults{});
  for (const char* other : {"", "{", "[1]", "{\"more\": 1}"}) {
    run.folder().write("run.json", other);
    EXPECT_EQ(faults_of(run.verify()), Faults{}) << other;
  }
}

TEST(VerifyClips, SaysThatLinesAreBroken) {
  RunOfClips run;
  run.manifest += "{\"id\": \"half\n[1]\n{\"id\": 3}\n\n";
  EXPECT_EQ(faults_of(run.verify()), Faults{"manifest.jsonl: unreadable: 3 lines are no entries"});
}

TEST(VerifyClips, WithoutAManifestNothingIsCertain) {
  const RunOfClips run(1);
  const VerifyReport report = verify_clips(run.folder().path());
  EXPECT_EQ(faults_of(report),
            (Faults{"manifest.jsonl: missing: without it nobody knows which clips should be here",
                    "clip0.wav: extra: the manifest does not know it"}));
  EXPECT_TRUE(report.clips[0].measured);
}

TEST(VerifyClips, TakesTheFolderOfSoundsForItsRun) {
  const RunOfClips run;
  run.verify();
  const VerifyReport report = verify_clips(run.folder() / "audio_samples/");
  EXPECT_EQ(faults_of(report), Faults{});
  EXPECT_EQ(report.right(), 3);
}

// As `tandem synthesize` and other programs write it: sounds beside it, other fields.
TEST(VerifyClips, TakesAManifestBesideItsSounds) {
  const TestFolder folder;
  write_wav(folder / "a.wav", RunOfClips::sound(200), 1, clip_rate, SampleFormat::pcm16);
  folder.write("manifest.jsonl", R"({"file": "a.wav", "id": 7, "seconds": 0.5, "more": [1]})"
                                 "\n");
  folder.write("report.html", "");
  const VerifyReport report = verify_clips(folder.path());
  EXPECT_EQ(faults_of(report), Faults{});
  EXPECT_EQ(report.clips.at(0).id, "7");
}

TEST(VerifyClips, RefusesWhatIsNoFolderOfClips) {
  const TestFolder folder;
  const Error missing = error_of([&] { verify_clips(folder / "no"); });
  EXPECT_EQ(missing.kind(), ErrorKind::io);
  EXPECT_EQ(missing.what(), "there is no folder `" + (folder / "no").string() + "`");
  const Error empty = error_of([&] { verify_clips(folder.path()); });
  EXPECT_EQ(empty.kind(), ErrorKind::data);
  EXPECT_EQ(empty.what(),
            "`" + folder.path().string() + "` holds neither manifest.jsonl nor sounds");
}

TEST(VerifyClips, StopsWhenAsked) {
  const Error error = error_of([] { RunOfClips(8).verify({.stop = [] { return true; }}); });
  EXPECT_EQ(error.kind(), ErrorKind::interrupted);
}

}  // namespace tandem
