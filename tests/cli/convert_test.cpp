#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace tandem {
namespace {

const std::string model = TANDEM_SOURCE_DIR "/tests/checkpoint/fixtures/xtts";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

ProgramRun convert(const std::string& from, const std::string& form, const std::string& out,
                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"convert", "--model", from, "--to", form, "--out", out};
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words);
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST(Convert, WritesOursAndCoquisAndNothingElse) {
  const TestFolder folder;
  const std::string ours = (folder / "ours").string(), coqui = (folder / "new/coqui").string();
  const ProgramRun first = convert(model, "tandem", ours);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(contains(first.out, "written      " + ours + "\n")) << first.out;
  EXPECT_EQ(names_in(ours), (std::vector<std::string>{"config.json", "model.safetensors",
                                                      "speakers.safetensors", "vocab.json"}));
  const ProgramRun second = convert(ours, "coqui", coqui, {"--json"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(nlohmann::json::parse(second.out)["files"].size(), 5u);
  EXPECT_EQ(names_in(coqui), (std::vector<std::string>{"config.json", "mel_stats.pth", "model.pth",
                                                       "speakers_xtts.pth", "vocab.json"}));
  EXPECT_EQ(read(coqui + "/vocab.json"), read(model + "/vocab.json"));
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"new", "ours"}));
}

TEST(Convert, BothWaysEndWithTheSameFile) {
  const TestFolder folder;
  const std::string first = (folder / "1").string(), coqui = (folder / "2").string(),
                    last = (folder / "3").string(), again = (folder / "4").string();
  ASSERT_EQ(convert(model, "tandem", first).code, 0);
  ASSERT_EQ(convert(first, "coqui", coqui).code, 0);
  ASSERT_EQ(convert(coqui, "tandem", last).code, 0);
  ASSERT_EQ(convert(coqui, "tandem", again).code, 0);
  EXPECT_EQ(read(last + "/speakers.safetensors"), read(first + "/speakers.safetensors"));
  EXPECT_EQ(read(again + "/model.safetensors"), read(last + "/model.safetensors"));
}

TEST(Convert, HalvesWhatIsAskedInHalfPrecision) {
  const TestFolder folder;
  ASSERT_EQ(convert(model, "tandem", (folder / "bf16").string(), {"--precision", "bf16"}).code, 0);
  const ProgramRun run =
      run_program({"inspect", (folder / "bf16/model.safetensors").string(), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["kind"], "XTTS model");
  EXPECT_EQ(json["types"]["bfloat16"], 5);
  EXPECT_EQ(json["types"]["float32"], 2) << "mel_stats and running statistics";
}

TEST(Convert, DoesNotReplaceWithoutForceNorWhatIsNoModel) {
  const TestFolder folder;
  const std::string out = (folder / "out").string();
  ASSERT_EQ(convert(model, "tandem", out).code, 0);
  const ProgramRun again = convert(model, "tandem", out);
  EXPECT_EQ(again.code, 4);
  EXPECT_TRUE(contains(again.err, "is there already (hint: choose another --out")) << again.err;
  folder.write("out/more.txt", "x");
  EXPECT_EQ(convert(model, "coqui", out, {"--force"}).code, 0);
  EXPECT_EQ(names_in(out).size(), 5u) << "the old folder is gone";
  folder.write("photos/me.jpg", "x");
  const ProgramRun photos = convert(model, "tandem", (folder / "photos").string(), {"--force"});
  EXPECT_EQ(photos.code, 4);
  EXPECT_TRUE(contains(photos.err, "something other than a model")) << photos.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "photos/me.jpg"));
}

TEST(Convert, NeverWritesOverItsOwnSource) {
  const TestFolder folder;
  const std::string own = (folder / "own").string();
  ASSERT_EQ(convert(model, "tandem", own).code, 0);
  for (const std::string& out : {own, own + "/", folder.path().string(), own + "/../own"}) {
    const ProgramRun run = convert(own, "coqui", out, {"--force"});
    EXPECT_EQ(run.code, 2) << out;
    EXPECT_TRUE(contains(run.err, "is the model's own folder or holds it")) << run.err;
  }
  EXPECT_TRUE(std::filesystem::exists(own + "/model.safetensors"));
}

TEST(Convert, SaysWhatIsMissingOrWrong) {
  const TestFolder folder;
  const std::string out = (folder / "out").string();
  EXPECT_EQ(run_program({"convert"}).code, 2);
  EXPECT_EQ(run_program({"convert", "--model", model, "--out", out}).code, 2);
  EXPECT_EQ(run_program({"convert", "--model", model, "--to", "tandem"}).code, 2);
  const ProgramRun form = convert(model, "onnx", out);
  EXPECT_EQ(form.code, 2);
  EXPECT_TRUE(contains(form.err, "--to is `onnx`; expected coqui or tandem")) << form.err;
  const ProgramRun precision = convert(model, "coqui", out, {"--precision", "int8"});
  EXPECT_EQ(precision.code, 2);
  EXPECT_TRUE(contains(precision.err, "--precision is `int8`; expected fp32, fp16 or bf16"));
  const ProgramRun none = convert((folder / "none").string(), "coqui", out);
  EXPECT_EQ(none.code, 4);
  EXPECT_TRUE(contains(none.err, "there is no model `")) << none.err;
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(Convert, AMaliciousModelIsRefusedAndNothingIsLeftBehind) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "evil");
  for (const char* name : {"config.json", "vocab.json"})
    folder.write(std::string("evil/") + name, read(model + "/" + name));
  folder.write("evil/model.pth", read(model + "/../trap_system.pth"));
  const ProgramRun run = convert((folder / "evil").string(), "tandem", (folder / "out").string());
  EXPECT_EQ(run.code, 3);
  EXPECT_TRUE(contains(run.err, "its pickle would call `posix.system`")) << run.err;
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"evil"});
}

}  // namespace tandem
