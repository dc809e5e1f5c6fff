// Many lines to a folder: what is written, resumed, refused.
#include "generate/speech_jobs.h"

#include <gtest/gtest.h>

#include <set>

#include "checkpoint/safetensors.h"
#include "device/simulated.h"
#include "generate/manifest.h"
#include "support/captured.h"
#include "support/tiny_xtts.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

class SpeechJobs : public testing::Test {
 protected:
  static void SetUpTestSuite() { simulate_devices(4); }
  static std::vector<SpeechLine> lines_of(const std::string& text) {
    return speech_lines(check_table(text, "texts.csv"), ".csv");
  }
  SpeechJobOptions to(const std::string& name) {
    return {.folder = (folder / name).string(),
            .standard = {.voice = {.speaker = "Ana"}, .seed = 11, .max_retries = 0}};
  }
  std::vector<ManifestEntry> entries_of(const std::string& name) {
    std::vector<ManifestEntry> entries;
    for (const std::string& line : split(read_file(folder / name / "manifest.jsonl"), '\n')) {
      ManifestEntry entry;
      if (from_json_line(line, entry)) entries.push_back(entry);
    }
    return entries;
  }
  std::map<std::string, std::string> sounds_in(const std::string& name) {
    std::map<std::string, std::string> sounds;
    for (const auto& file : std::filesystem::directory_iterator(folder / name)) {
      if (file.path().extension() == ".wav") {
        sounds[file.path().filename().string()] = read_file(file.path());
      }
    }
    return sounds;
  }

  TestFolder folder;
  std::string model = write_tiny_xtts(folder);
  std::vector<SpeechLine> six =
      lines_of("id,text\na,one\nb,the other\na,one\n,in winter\nc,\"Yes, the river.\"\nd,12\n");
};

TEST_F(SpeechJobs, WritesASoundALineAndTheManifestInOrder) {
  Synthesizer synthesizer(model, {.devices = {"/GPU:0"}, .batch_size = 3});
  const SpeechJobProgress progress = speak_lines(synthesizer, six, to("out"));
  EXPECT_EQ(progress.done, 6);
  EXPECT_EQ(progress.failed + progress.skipped, 0);
  const auto entries = entries_of("out");
  ASSERT_EQ(entries.size(), 6);
  std::vector<std::string> files;
  double seconds = 0;
  for (const ManifestEntry& entry : entries) {
    files.push_back(entry.file);
    EXPECT_EQ(entry.status, "done");
    EXPECT_EQ(entry.voice, "Ana");
    EXPECT_GT(entry.rtf(), 0);
    EXPECT_EQ(entry.attempts, entry.pieces);
    seconds += entry.seconds;
    // What the manifest says is enough to say it again.
    const Speech again = synthesizer.speak(
        {.text = entry.text, .voice = {.speaker = "Ana"}, .seed = entry.seed, .max_retries = 0});
    EXPECT_EQ(again.sound_seconds(), entry.seconds);
  }
  EXPECT_EQ(files, (std::vector<std::string>{"a.wav", "b.wav", "a_2.wav", "000004.wav", "c.wav",
                                             "d.wav"}));
  EXPECT_EQ(entries[4].normalised, "yes, the river");
  EXPECT_DOUBLE_EQ(progress.sound_seconds, seconds);
  EXPECT_EQ(sounds_in("out").size(), 6);
  EXPECT_NE(sounds_in("out")["a.wav"], sounds_in("out")["a_2.wav"]) << "each line its own seed";
}

TEST_F(SpeechJobs, SaysTheSameOnAnyDevicesInAnyOrderAndAfterAStop) {
  std::map<std::string, std::string> expected;
  {
    Synthesizer synthesizer(model, {.devices = {"/GPU:0"}, .batch_size = 1});
    speak_lines(synthesizer, six, to("one"));
    expected = sounds_in("one");
  }
  for (const int batch : {7, 32}) {
    Synthesizer synthesizer(model, {.batch_size = batch});
    EXPECT_EQ(synthesizer.devices().size(), 4);
    const std::string name = "batch" + std::to_string(batch);
    std::vector<SpeechLine> turned(six.rbegin(), six.rend());
    speak_lines(synthesizer, turned, to(name));
    EXPECT_EQ(sounds_in(name), expected);
  }
  Synthesizer synthesizer(model, {.devices = {"/GPU:0", "/GPU:1"}, .batch_size = 1});
  SpeechJobOptions stopped = to("stopped");
  std::atomic<int64_t> done{0};
  stopped.on_progress = [&](const SpeechJobProgress& now) { done = now.done; };
  stopped.stop = [&] { return done > 0; };
  std::vector<SpeechLine> many = six;
  for (int i = 0; i < 200; ++i) {
    SpeechLine line = six[1];
    line.name = "more" + std::to_string(i);
    many.push_back(line);
  }
  const Error error = error_of([&] { speak_lines(synthesizer, many, stopped); });
  EXPECT_EQ(error.kind(), ErrorKind::interrupted);
  EXPECT_NE(std::string(error.what()).find("interrupted after "), std::string::npos);
  const size_t before = entries_of("stopped").size();
  EXPECT_GT(before, 0);
  EXPECT_LT(before, many.size());
  EXPECT_EQ(sounds_in("stopped").size(), before);
  const SpeechJobProgress rest = speak_lines(synthesizer, six, to("stopped"));
  EXPECT_EQ(rest.done, 6);
  for (const auto& [name, bytes] : expected) EXPECT_EQ(sounds_in("stopped")[name], bytes) << name;
}

TEST_F(SpeechJobs, ARerunSpeaksOnlyWhatIsMissingFailedOrChanged) {
  Synthesizer synthesizer(model, {.devices = {"/GPU:0"}});
  speak_lines(synthesizer, six, to("out"));
  const auto first = sounds_in("out");
  EXPECT_EQ(speak_lines(synthesizer, six, to("out")).skipped, 6);
  std::filesystem::remove(folder / "out/b.wav");
  EXPECT_EQ(speak_lines(synthesizer, six, to("out")).skipped, 5);
  EXPECT_EQ(sounds_in("out"), first);
  std::vector<SpeechLine> changed = six;
  changed[1].text = "the inner";
  EXPECT_EQ(speak_lines(synthesizer, changed, to("out")).skipped, 5);
  EXPECT_NE(sounds_in("out")["b.wav"], first.at("b.wav"));
  SpeechJobOptions warmer = to("out");
  warmer.standard.temperature = 0.9;
  EXPECT_EQ(speak_lines(synthesizer, changed, warmer).skipped, 0);
  EXPECT_EQ(entries_of("out").size(), 6);
}

TEST_F(SpeechJobs, RecordsBadLinesAndGoesOn) {
  Synthesizer synthesizer(model, {.devices = {"/GPU:0"}});
  const auto lines = lines_of(
      "id,text,language,speaker,voice\n1,good,,,\n2,,,,\n3,hello,xx,,\n4,hello,,Annn,\n"
      "5,hello,,,/none.wav\n6,...,,,\n7,also good,,Ben,\n");
  const SpeechJobProgress progress = speak_lines(synthesizer, lines, to("out"));
  EXPECT_EQ(progress.failed, 5);
  std::vector<std::string> failed;
  for (const ManifestEntry& entry : entries_of("out")) {
    EXPECT_EQ(entry.status == "failed", !entry.error.empty());
    if (entry.status == "failed") failed.push_back(entry.id);
  }
  EXPECT_EQ(failed, (std::vector<std::string>{"2", "3", "4", "5", "6"}));
  EXPECT_EQ(sounds_in("out").size(), 2);
  EXPECT_EQ(speak_lines(synthesizer, lines, to("out")).skipped, 2) << "failed ones are tried again";
}

TEST_F(SpeechJobs, SavesCodesAndLatentsALine) {
  Synthesizer synthesizer(model, {.devices = {"/GPU:0"}});
  SpeechJobOptions options = to("out");
  options.codes_folder = (folder / "codes").string();
  options.latents_folder = (folder / "latents").string();
  speak_lines(synthesizer, six, options);
  const SafetensorsFile codes = read_safetensors(folder / "codes/a_2.safetensors");
  const SafetensorsFile latents = read_safetensors(folder / "latents/a_2.safetensors");
  EXPECT_EQ(codes.metadata.at("text.0"), "one");
  EXPECT_GT(codes.tensors.at("codes.0").numel(), 0);
  EXPECT_GE(latents.tensors.at("latents.0").size(0), codes.tensors.at("codes.0").numel());
  EXPECT_EQ(latents.tensors.at("latents.0").size(1), 64);
}

TEST_F(SpeechJobs, StopsWhenItCannotWrite) {
  Synthesizer synthesizer(model, {.devices = {"/GPU:0"}});
  folder.write("file", "x");
  EXPECT_EQ(error_of([&] { speak_lines(synthesizer, six, to("file/out")); }).kind(), ErrorKind::io);
  std::filesystem::create_directories(folder / "out/a.wav");  // a folder where a sound should go
  folder.write("out/a.wav/x", "x");
  EXPECT_EQ(error_of([&] { speak_lines(synthesizer, six, to("out")); }).kind(), ErrorKind::io);
}

TEST(LineSeed, FitsAnyJsonReaderAndDiffersByLine) {
  std::set<uint64_t> seeds;
  for (int i = 0; i < 1000; ++i) seeds.insert(line_seed(1, std::to_string(i)));
  EXPECT_EQ(seeds.size(), 1000);
  EXPECT_LT(*seeds.rbegin(), uint64_t{1} << 53);
  EXPECT_NE(line_seed(1, "a"), line_seed(2, "a"));
}

}  // namespace
}  // namespace tandem
