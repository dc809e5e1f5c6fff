// `tandem synthesize` as a user runs it, with a small random model.
#include <gtest/gtest.h>

#include <fstream>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/program.h"
#include "support/tiny_xtts.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

class Synthesize : public testing::Test {
 protected:
  using Words = std::vector<std::string>;
  Words words_of(const Words& more, bool voice = true) {
    Words words = {"synthesize", "--model", model, "--simulate-gpus", "1", "--max-retries", "0"};
    if (voice) words.insert(words.end(), {"--speaker", "Ana"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  ProgramRun run(const Words& more, bool voice = true) {
    return run_program(words_of(more, voice));
  }
  std::string path(const std::string& name) { return (folder / name).string(); }
  // Exit code and the one line it says.
  void expect_refusal(const Words& more, int code, const std::string& words, bool voice = true) {
    const ProgramRun result = run(more, voice);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  std::vector<nlohmann::json> manifest_of(const std::string& name) {
    std::vector<nlohmann::json> entries;
    for (const std::string& line : split(read_file(folder / name / "manifest.jsonl"), '\n')) {
      if (!line.empty()) entries.push_back(nlohmann::json::parse(line));
    }
    return entries;
  }

  TestFolder folder;
  std::string model = write_tiny_xtts(folder);
};

TEST_F(Synthesize, WritesASoundAndTellsOneDocument) {
  const ProgramRun told =
      run({"--text", "Hello there. Is it you?", "-o", path("a.wav"), "--seed", "3", "--json"});
  ASSERT_EQ(told.code, 0) << told.err;
  const nlohmann::json document = nlohmann::json::parse(told.out);
  EXPECT_EQ(document["sample_rate"], 24000);
  EXPECT_GT(document["seconds"], 0.1);
  EXPECT_GT(document["rtf"], 0);
  EXPECT_EQ(document["pieces"][0]["normalised"], "hello there. is it you?");
  const std::string first = read_file(path("a.wav"));
  EXPECT_EQ(first.size(), 44 + 2 * std::lround(document["seconds"].get<double>() * 24000));
  // The same again, over what is there; and another seed.
  run({"--text", "Hello there. Is it you?", "-o", path("a.wav"), "--seed", "3"});
  EXPECT_EQ(read_file(path("a.wav")), first);
  run({"--text", "Hello there. Is it you?", "-o", path("a.wav"), "--seed", "4"});
  EXPECT_NE(read_file(path("a.wav")), first);
}

TEST_F(Synthesize, SaysThatAModelIsNoVoiceYet) {
  folder.write("model/trained.json", R"({"trained": ["dvae", "gpt"]})");
  const ProgramRun told = run({"--text", "Hello.", "-o", path("a.wav")});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_NE(told.err.find("is no voice yet: its decoder was not trained"), std::string::npos)
      << told.err;
}

TEST_F(Synthesize, StreamsWhatItWouldWrite) {
  const ProgramRun streamed =
      run({"--text", "Hello there. And more.", "--stream", "-o", path("a.wav")});
  ASSERT_EQ(streamed.code, 0) << streamed.err;
  EXPECT_EQ(streamed.out, read_file(path("a.wav")).substr(44));
  EXPECT_NE(streamed.err.find("first after"), std::string::npos);
}

TEST_F(Synthesize, ReadsTheTextFromAFileOrStandardInput) {
  const std::string text = folder.write("text.txt", "Hello.\nThere.\n");
  ASSERT_EQ(run({"--text-file", text, "-o", path("a.wav")}).code, 0);
  EXPECT_GT(read_file(path("a.wav")).size(), 1000);
  EXPECT_EQ(run({"--text-file", path("none.txt"), "-o", path("b.wav")}).code, 4);
  std::string piped = "cat " + text + " | " TANDEM_PROGRAM;
  for (const std::string& word : words_of({"-q", "-o", path("c.wav")})) piped += " " + word;
  EXPECT_EQ(std::system(piped.c_str()), 0);
  EXPECT_EQ(read_file(path("c.wav")), read_file(path("a.wav")));
}

TEST_F(Synthesize, ClonesSeveralRecordingsAndKeepsCodesAndLatents) {
  const std::string a = write_recording(folder, "a.wav"), b = write_recording(folder, "b.wav", 1);
  const ProgramRun cloned =
      run({"--voice", a, b, "--text", "Hello.", "-o", path("out.flac"), "--save-codes",
           path("codes.safetensors"), "--save-latents", path("latents.safetensors"), "--greedy"},
          false);
  ASSERT_EQ(cloned.code, 0) << cloned.err;
  EXPECT_EQ(read_file(path("out.flac")).substr(0, 4), "fLaC");
  const SafetensorsFile codes = read_safetensors(path("codes.safetensors"));
  const SafetensorsFile latents = read_safetensors(path("latents.safetensors"));
  EXPECT_GE(latents.tensors.at("latents.0").size(0), codes.tensors.at("codes.0").size(0));
  EXPECT_EQ(codes.metadata.at("normalised.0"), "hello");
}

TEST_F(Synthesize, WorksWithLongTextAndAnyRecording) {
  std::string text;
  while (text.size() < 10000) text += "the inner river. ";
  const ProgramRun spoken =
      run_program({"synthesize", "--model", model, "--simulate-gpus", "2", "--max-retries", "0",
                   "--voice", write_recording(folder, "wide.wav", 1, 2, 96000), "--text", text,
                   "--speed", "10", "-o", path("a.wav")});
  EXPECT_EQ(spoken.code, 0) << spoken.err;
}

TEST_F(Synthesize, RefusesBadInputInOneSentence) {
  const std::string out = path("out.wav");
  expect_refusal({"--text", "", "-o", out}, 3, "the text is empty");
  expect_refusal({"--text", "...", "-o", out}, 3, "nothing to say");
  expect_refusal({"--text", "Hi", "--language", "xx", "-o", out}, 3,
                 "it speaks en, es, fr, de, it, pt, pl, tr, ru, nl, cs, ar, zh-cn, hu, ko, ja, hi");
  expect_refusal({"--text", "Hi", "--speaker", "Anna", "-o", out}, 3, "Did you mean `Ana`?", false);
  expect_refusal({"--text", "Hi", "-o", out}, 2, "no voice was given", false);
  expect_refusal({"--text", "Hi", "--voice", "a.wav", "-o", out}, 2, "more than one kind of voice");
  expect_refusal({"--text", "Hi", "--text-file", "a.txt", "-o", out}, 2, "expected one of them");
  expect_refusal({"--text", "Hi"}, 2, "no output was given");
  expect_refusal({"--text", "Hi", "-o", path("none/out.wav")}, 4, "its folder does not exist");
  expect_refusal({"--text", "Hi", "-o", path("out.mp3")}, 2, "ends in .wav or .flac");
  expect_refusal({"--text", "Hi", "-o", out, "--temperature", "hot"}, 2, "expected a number");
  expect_refusal({"--text", "Hi", "-o", out, "--temperature", "-1"}, 2, "temperature is -1");
  expect_refusal({"--text", "Hi", "-o", out, "--compat", "other"}, 2, "expected coqui");
  expect_refusal({"--text", "Hi", "-o", out, "--do-sample", "maybe"}, 2, "expected on or off");
  expect_refusal({"--text", "Hi", "-o", out, "--precision", "fp8"}, 2, "expected auto");
  expect_refusal({"--text", "Hi", "--stream", "--json"}, 2, "both want standard output");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(Synthesize, RefusesARecordingWithoutAVoice) {
  const std::string silence = write_recording(folder, "silence.wav", 1, 1, 22050, 0);
  const std::string blink = write_recording(folder, "blink.wav", 0.1);
  const std::string out = path("out.wav");
  expect_refusal({"--voice", silence, "--text", "Hi", "-o", out}, 3, "is silent", false);
  expect_refusal({"--voice", blink, "--text", "Hi", "-o", out}, 3, "0.10 s", false);
  expect_refusal({"--voice", path("none.wav"), "--text", "Hi", "-o", out}, 4, "none.wav", false);
}

TEST_F(Synthesize, RefusesAModelThatIsNotWhole) {
  for (const char* file : {"vocab.json", "config.json", "model.safetensors"}) {
    std::filesystem::rename(folder / "model" / file, folder / "aside");
    expect_refusal({"--text", "Hi", "-o", path("a.wav")}, 4, "a complete folder holds");
    std::filesystem::rename(folder / "aside", folder / "model" / file);
  }
}

TEST_F(Synthesize, SpeaksManyLinesAndGoesOnWhereItStopped) {
  std::string texts = "id,text,language\n";
  for (int i = 0; i < 12; ++i) texts += fmt::format("n{},the river number {},\n", i, i);
  texts += "bad,hello,xx\n";
  const std::string file = folder.write("texts.csv", texts);
  const Words words = {"--text-file", file, "-o", path("out"), "--json"};
  const ProgramRun first = run(words);
  EXPECT_EQ(first.code, 3) << first.err;
  const nlohmann::json told = nlohmann::json::parse(first.out);
  EXPECT_EQ(told["spoken"], 12);
  EXPECT_EQ(told["failed"], 1);
  const auto entries = manifest_of("out");
  ASSERT_EQ(entries.size(), 13);
  EXPECT_EQ(entries[3]["file"], "n3.wav");
  EXPECT_EQ(entries[3]["normalised"], "the river number three");
  EXPECT_EQ(entries[12]["status"], "failed");
  EXPECT_NE(entries[12]["error"].get<std::string>().find("does not speak `xx`"), -1UL);
  const nlohmann::json again = nlohmann::json::parse(run(words).out);
  EXPECT_EQ(again["spoken"], 0);
  EXPECT_EQ(again["skipped"], 12);
}

TEST_F(Synthesize, AKilledRunLeavesWholeFilesAndTheRestIsTheSame) {
  std::string texts;
  for (int i = 0; i < 60; ++i) texts += fmt::format("the river number {} in winter\n", i);
  const std::string file = folder.write("texts.txt", texts);
  ASSERT_EQ(run({"--text-file", file, "-o", path("whole"), "--batch-size", "32"}).code, 0);
  Program killed(words_of({"--text-file", file, "-o", path("killed"), "--batch-size", "1"}));
  const auto count = [&] {
    std::error_code none;
    int64_t sounds = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "killed", none)) {
      sounds +=
          entry.path().extension() == ".wav" && !entry.path().filename().string().starts_with('.');
    }
    return sounds;
  };
  // Entered, not only written: a file without its entry is spoken again.
  const auto entered = [&] {
    std::ifstream manifest(folder / "killed" / "manifest.jsonl");
    int64_t lines = 0;
    for (std::string line; std::getline(manifest, line);) ++lines;
    return lines;
  };
  while (entered() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  killed.signal(SIGKILL);
  killed.wait();
  EXPECT_LT(count(), 60);
  const ProgramRun rest =
      run_program({"synthesize", "--model", model, "--simulate-gpus", "2", "--max-retries", "0",
                   "--speaker", "Ana", "--text-file", file, "-o", path("killed"), "--json"});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_GT(nlohmann::json::parse(rest.out)["skipped"], 0);
  EXPECT_EQ(count(), 60);
  for (int i = 1; i <= 60; ++i) {
    const std::string name = fmt::format("{:06}.wav", i);
    EXPECT_EQ(read_file(folder / "killed" / name), read_file(folder / "whole" / name)) << name;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder / "killed")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << entry.path();
  }
}

TEST_F(Synthesize, ASignalEndsItCleanly) {
  std::string texts;
  for (int i = 0; i < 5000; ++i) texts += "the river in winter\n";
  const std::string file = folder.write("texts.txt", texts);
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}}) {
    const std::string name = "out" + std::to_string(code);
    Program program(words_of({"--text-file", file, "-o", path(name), "--batch-size", "1"}));
    while (!std::filesystem::exists(folder / name / "000001.wav")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    program.signal(signal);
    const ProgramRun ended = program.wait();
    EXPECT_EQ(ended.code, code);
    EXPECT_NE(ended.err.find("interrupted after "), std::string::npos) << ended.err;
    EXPECT_GT(manifest_of(name).size(), 0);
  }
}

}  // namespace
}  // namespace tandem
