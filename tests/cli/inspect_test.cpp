#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace tandem {
namespace {

const std::string fixtures = TANDEM_SOURCE_DIR "/tests/checkpoint/fixtures/";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

nlohmann::json json_of(const std::vector<std::string>& words) {
  const ProgramRun run = run_program(words);
  EXPECT_EQ(run.code, 0) << run.err;
  return nlohmann::json::parse(run.out, nullptr, false);
}

}  // namespace

TEST(Inspect, TellsWhatAFolderIs) {
  const ProgramRun run = run_program({"inspect", fixtures + "xtts"});
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* line :
       {"is           XTTS v2: 2 layers, width 8, 2 heads, 6 text and 10 audio tokens\n",
        "languages    en de\n",
        "sampling     temperature 0.75, repetition_penalty 5, top_k 50, top_p 0.85, "
        "length_penalty 1\n",
        "is           XTTS model of Coqui, pth zip, ", "tensors      9 (8 float32, 1 int64)\n",
        "parameters   1,028\n", "  vocoder                    260     1.0 KiB  3 tensors\n",
        "metadata     config = <TTS.tts.configs.xtts_config.XttsConfig, not read>\n",
        "is           speakers of XTTS, 1, pth zip, "})
    EXPECT_TRUE(contains(run.out, line)) << line << "\nin\n" << run.out;
}

TEST(Inspect, GivesAFolderAsOneJsonDocument) {
  const auto json = json_of({"inspect", fixtures + "xtts", "--json"});
  EXPECT_EQ(json["kind"], "XTTS v2 folder");
  EXPECT_EQ(json["gpt"]["layers"], 2);
  EXPECT_EQ(json["languages"], (std::vector<std::string>{"en", "de"}));
  EXPECT_EQ(json["sampling"]["top_k"], 50);
  ASSERT_EQ(json["files"].size(), 2u);
  EXPECT_EQ(json["files"][0]["parts"]["gpt"]["parameters"], 128);
  EXPECT_EQ(json["files"][0]["parts"]["conditioning"]["parameters"], 640);
  EXPECT_EQ(json["files"][0]["types"]["int64"], 1);
  EXPECT_FALSE(json["files"][0].contains("list"));
}

TEST(Inspect, ListsEveryTensor) {
  const ProgramRun run = run_program({"inspect", fixtures + "kinds.pth", "--tensors"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "model/half        float16   [5]\n")) << run.out;
  EXPECT_TRUE(contains(run.out, "views/transposed  float32   [6, 4]\n")) << run.out;
  const auto json = json_of({"inspect", fixtures + "kinds.safetensors", "--tensors", "--json"});
  EXPECT_EQ(json["format"], "safetensors");
  EXPECT_EQ(json["list"].size(), json["tensors"].get<size_t>());
}

TEST(Inspect, KnowsFilesByWhatTheyHold) {
  EXPECT_EQ(json_of({"inspect", fixtures + "trainer.pth", "--json"})["kind"],
            "XTTS trainer's checkpoint");
  EXPECT_EQ(json_of({"inspect", fixtures + "bare_legacy.pth", "--json"})["kind"], "one tensor");
  EXPECT_EQ(json_of({"inspect", fixtures + "bare_legacy.pth", "--json"})["format"], "pth legacy");
  EXPECT_EQ(json_of({"inspect", fixtures + "kinds.pth", "--json"})["kind"], "tensors");
  EXPECT_EQ(json_of({"inspect", fixtures + "module.pth", "--json"})["kind"],
            "an object, <torch.nn.modules.linear.Linear, not read>");
}

TEST(Inspect, RefusesAMaliciousFileWithExitCode3AndRunsNothing) {
  const TestFolder folder;
  for (const char* name : {"system", "popen", "eval", "legacy"}) {
    const ProgramRun run =
        run_program({"inspect", fixtures + "trap_" + name + ".pth"}, {{"PWD", folder.path()}});
    EXPECT_EQ(run.code, 3) << name;
    EXPECT_TRUE(contains(run.err, "is not a valid .pth file: its pickle would call `")) << run.err;
    EXPECT_EQ(run.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists("tandem_pickle_was_run"));
}

TEST(Inspect, BadInputIsOneSentenceAndTheRightExitCode) {
  const TestFolder folder;
  EXPECT_EQ(run_program({"inspect"}).code, 2);
  EXPECT_EQ(run_program({"inspect", "a", "b"}).code, 2);
  const ProgramRun none = run_program({"inspect", (folder / "none.pth").string()});
  EXPECT_EQ(none.code, 4);
  EXPECT_TRUE(contains(none.err, "No such file or directory")) << none.err;
  const ProgramRun text = run_program({"inspect", folder.write("a.txt", "some words here")});
  EXPECT_EQ(text.code, 3);
  EXPECT_TRUE(contains(text.err, "is neither a safetensors nor a .pth file")) << text.err;
  const ProgramRun empty = run_program({"inspect", folder.path().string()});
  EXPECT_EQ(empty.code, 4);
  EXPECT_TRUE(contains(empty.err, "has no weights; a complete folder holds")) << empty.err;
}

}  // namespace tandem
