#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.h"
#include "support/tiny_xtts.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

class VoiceProgram : public testing::Test {
 protected:
  TestFolder folder;
  std::string model = write_tiny_xtts(folder);
  std::string out = (folder / "me.safetensors").string();
};

TEST_F(VoiceProgram, SavesAVoiceThatSpeaksAsItsRecordingsDo) {
  const std::string a = write_recording(folder, "a.wav"), b = write_recording(folder, "b.wav", 1);
  const ProgramRun saved =
      run_program({"voice", "save", "--model", model, "--voice", a, b, "--out", out});
  ASSERT_EQ(saved.code, 0) << saved.err;
  EXPECT_EQ(load_voice(out).conditioning.size(0), 32);
  const auto speak = [&](const std::vector<std::string>& voice, const std::string& name) {
    std::vector<std::string> words = {"synthesize",
                                      "--model",
                                      model,
                                      "--text",
                                      "Hello.",
                                      "--max-retries",
                                      "0",
                                      "--simulate-gpus",
                                      "1",
                                      "-o",
                                      (folder / name).string()};
    words.insert(words.end(), voice.begin(), voice.end());
    EXPECT_EQ(run_program(words).code, 0);
    return read_file(folder / name);
  };
  const std::string cloned = speak({"--voice", a, b}, "1.wav");
  EXPECT_EQ(speak({"--voice-file", out}, "2.wav"), cloned);
  EXPECT_EQ(speak({"--voice", a, "--voice", b}, "3.wav"), cloned);
  EXPECT_NE(speak({"--voice", a}, "4.wav"), cloned);
}

TEST_F(VoiceProgram, ListsTheSpeakersOfAFolder) {
  EXPECT_EQ(run_program({"voice", "list", "--model", model}).out, "Ana\nBen\n");
  const nlohmann::json told =
      nlohmann::json::parse(run_program({"voice", "list", "--model", model, "--json"}).out);
  EXPECT_EQ(told["speakers"], (std::vector<std::string>{"Ana", "Ben"}));
  std::filesystem::remove(folder / "model/speakers.safetensors");
  const ProgramRun none = run_program({"voice", "list", "--model", model});
  EXPECT_EQ(none.code, 0);
  EXPECT_NE(none.out.find("holds no speakers"), std::string::npos);
}

TEST_F(VoiceProgram, RefusesWrongUsage) {
  const auto code = [](const std::vector<std::string>& words) { return run_program(words).code; };
  EXPECT_EQ(code({"voice"}), 2);
  EXPECT_EQ(code({"voice", "sing", "--model", model}), 2);
  EXPECT_EQ(code({"voice", "list"}), 2);
  EXPECT_EQ(code({"voice", "save", "--model", model, "--out", out}), 2);
  EXPECT_EQ(code({"voice", "save", "--model", model, "--speaker", "Ana"}), 2);
  EXPECT_EQ(code({"voice", "list", "--model", (folder / "none").string()}), 4);
  EXPECT_EQ(code({"voice", "save", "--model", model, "--speaker", "Ana", "--out",
                  (folder / "none/v.safetensors").string()}),
            4);
}

}  // namespace
}  // namespace tandem
