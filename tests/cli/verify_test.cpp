#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "audio/file/write_audio.h"
#include "support/program.h"

namespace tandem {
namespace {

const std::string tiny_musicgen = TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/tiny";

// Tones of a quarter of a second with a manifest.
class ClipsOnDisk {
 public:
  explicit ClipsOnDisk(int clips, double hertz = 200) {
    std::string manifest;
    for (int i = 0; i < clips; ++i) {
      const std::string file = "c" + std::to_string(i) + ".wav";
      write(file, hertz + 20 * i, 0.3);
      manifest += R"({"id": "c", "seconds": 0.25, "status": "done", "file": ")" + file + "\"}\n";
    }
    folder_.write("manifest.jsonl", manifest);
  }
  void write(const std::string& file, double hertz, double loudness) const {
    std::filesystem::create_directories(folder_ / "audio_samples");
    std::vector<float> samples(4000);
    for (size_t i = 0; i < samples.size(); ++i) {
      const double angle = 2 * M_PI * hertz * static_cast<double>(i) / 16000;
      samples[i] = static_cast<float>(loudness * std::sin(angle));
    }
    write_wav(folder_ / ("audio_samples/" + file), samples, 1, 16000, SampleFormat::float32);
  }
  std::string path() const { return folder_.path().string(); }
  const TestFolder& folder() const { return folder_; }

 private:
  TestFolder folder_;
};

bool has_part(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(VerifyProgram, SaysThatAllIsRight) {
  const ClipsOnDisk clips(3);
  const ProgramRun run = run_program({"verify", clips.path(), "-q"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(has_part(run.out, "3 clips listed, 3 right, 0.8s of sound\n")) << run.out;
  EXPECT_TRUE(run.out.ends_with("\nnothing is wrong\n")) << run.out;
}

TEST(VerifyProgram, ListsWhatIsWrongWithExitCode3) {
  const ClipsOnDisk clips(3);
  clips.write("c1.wav", 300, 0);
  clips.write("more.wav", 700, 0.3);
  std::filesystem::remove(clips.folder() / "audio_samples/c2.wav");
  const ProgramRun run = run_program({"verify", clips.path(), "-q"});
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_TRUE(run.out.starts_with(
      "file      fault       what is wrong\n"
      "c1.wav    silent      100 % of it is under -60 dBFS, the peak is 0.0000\n"
      "c2.wav    missing     there is no such file\n"
      "more.wav  extra       the manifest does not know it\n"))
      << run.out;
  EXPECT_TRUE(run.out.ends_with("wrong: 1 extra, 1 missing, 1 silent\n")) << run.out;
}

TEST(VerifyProgram, ShowsProgress) {
  const ProgramRun run = run_program({"verify", ClipsOnDisk(3).path()});
  EXPECT_TRUE(has_part(run.out + run.err, "clip 3/3")) << run.out << run.err;
}

TEST(VerifyProgram, GivesOneJsonDocument) {
  const ClipsOnDisk clips(2);
  clips.write("c1.wav", 300, 3);
  const ProgramRun run = run_program({"verify", clips.path(), "--json"});
  EXPECT_EQ(run.code, 3);
  const auto json = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << run.out;
  EXPECT_EQ(json["clips"], 2);
  EXPECT_EQ(json["right"], 1);
  EXPECT_EQ(json["findings"][0]["file"], "c1.wav");
  EXPECT_EQ(json["findings"][0]["fault"], "clipped");
  EXPECT_NEAR(json["measured"][0]["peak"].get<double>(), 0.3, 1e-3);
}

TEST(VerifyProgram, TakesOtherLimits) {
  const ClipsOnDisk clips(2);
  clips.write("c1.wav", 300, 3);
  EXPECT_EQ(run_program({"verify", clips.path(), "-q"}).code, 3);
  EXPECT_EQ(run_program({"verify", clips.path(), "-q", "--max-clipped", "1"}).code, 0);
  const ProgramRun wrong = run_program({"verify", clips.path(), "--max-offset", "much"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has_part(wrong.err, "--max-offset is `much`; expected a number of at least 0"));
}

TEST(VerifyProgram, ComparesWithAReference) {
  const ClipsOnDisk clips(4, 300), reference(3, 900);
  const ProgramRun run = run_program({"verify", clips.path(), "--reference", reference.path(),
                                      "--model", tiny_musicgen, "--simulate-gpus", "1", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out, nullptr, false);
  EXPECT_GT(json["fad"]["score"].get<double>(), 0);
  EXPECT_EQ(json["fad"]["subset_scores"].size(), 2u);
  EXPECT_EQ(json["fad"]["references"], 3);
  std::ifstream file(clips.folder() / "evaluation_results/evaluation_results.json");
  const auto results = nlohmann::json::parse(file, nullptr, false);
  EXPECT_EQ(results["fad_score"], json["fad"]["score"]);
  EXPECT_EQ(results["fad_per_sample"].size(), 4u);
  EXPECT_TRUE(std::filesystem::exists(clips.folder() / "evaluation_results/per_sample_scores.csv"));
}

TEST(VerifyProgram, RefusesWithASentence) {
  const ClipsOnDisk clips(1);
  const TestFolder empty;
  const auto refused = [](std::vector<std::string> words, int code, const std::string& sentence) {
    words.insert(words.begin(), "verify");
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.code, code) << sentence;
    EXPECT_TRUE(has_part(run.err, sentence)) << run.err;
  };
  refused({}, 2, "expected one folder of clips");
  refused({clips.path(), "--reference", empty.path()}, 2, "--reference also needs --model");
  refused({clips.path(), "--model", tiny_musicgen}, 2, "--model is of use only with --reference");
  refused({empty.path() / "no"}, 4, "there is no folder");
  refused({empty.path()}, 3, "holds neither manifest.jsonl nor sounds");
  refused({clips.path(), "--reference", empty.path(), "--model", tiny_musicgen}, 3,
          "holds no sounds");
}

}  // namespace tandem
