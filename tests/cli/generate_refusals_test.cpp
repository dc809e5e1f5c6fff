// Every wrong request is one sentence and its exit code, before anything is made.
#include "cli/generate_run.h"

namespace tandem {
namespace {

class GenerateRefusals : public GenerateRuns {
 protected:
  void expect_refusal(const Words& more, int code, const std::string& sentence) {
    const ProgramRun told = run(more);
    EXPECT_EQ(told.code, code) << told.err;
    EXPECT_EQ(told.out, "") << sentence;
    EXPECT_NE(told.err.find(sentence), std::string::npos) << told.err;
    EXPECT_EQ(std::count(told.err.begin(), told.err.end(), '\n'), 1) << told.err;
  }
  std::string copy_of_model(const std::string& name, const Words& files) {
    std::filesystem::create_directories(folder / name);
    for (const std::string& file : files)
      std::filesystem::copy_file(model() + "/" + file, folder / name / file);
    return path(name);
  }
};

TEST_F(GenerateRefusals, ModelsThatAreNotThereOrNotWhole) {
  expect_refusal({"--model", path("none"), "--prompt", "a"}, 4,
                 "there is no model folder `" + path("none") + "`");
  const std::string half = copy_of_model("half", {"config.json"});
  expect_refusal({"--model", half, "--prompt", "a"}, 4, "`" + half + "` has no weights");
  const std::string mute = copy_of_model("mute", {"config.json", "model.safetensors"});
  expect_refusal({"--model", mute, "--prompt", "a"}, 4, "`" + mute + "` has no tokenizer.json");
  const ProgramRun by_name =
      run_program({"generate", "--prompt", "a", "paths.model_dir=" + model()});
  EXPECT_EQ(by_name.code, 4);
  EXPECT_NE(by_name.err.find("is a model itself: --model"), std::string::npos) << by_name.err;
}

TEST_F(GenerateRefusals, MelodyModels) {
  nlohmann::json config = nlohmann::json::parse(read_file(model() + "/config.json"));
  config["model_type"] = "musicgen_melody";
  folder.write("melody/config.json", config.dump());
  expect_refusal({"--model", path("melody"), "--prompt", "a"}, 1, "is a melody model");
}

TEST_F(GenerateRefusals, Captions) {
  expect_refusal({"--captions", path("none.csv")}, 4,
                 "cannot open captions `" + path("none.csv") + "`: no such file");
  expect_refusal({"--captions", write_captions(2), "data.text_column=words"}, 3,
                 "has no column `words`; it has `id`, `caption`, `mood`");
  expect_refusal({"--captions", write_captions(2), "data.id_column=key"}, 3, "has no column `key`");
  expect_refusal({"data=tta/musiccaps_captions"}, 4, "save google/MusicCaps there");
  expect_refusal({"--captions", folder.write("empty.csv", "id,caption\n")}, 3, "holds no caption");
}

TEST_F(GenerateRefusals, NothingToMakeOrTwoThings) {
  expect_refusal({}, 2, "nothing to generate was given");
  expect_refusal({"--prompt", "a", "--captions", write_captions(2)}, 2,
                 "--prompt and a dataset of captions were both given");
  expect_refusal({"--prompt", "a", "data=tta/musiccaps_captions"}, 2, "were both given");
  expect_refusal({"--prompt", " "}, 3, "a prompt is empty");
}

TEST_F(GenerateRefusals, Numbers) {
  expect_refusal({"--prompt", "a", "-b", "0"}, 1,
                 "`generation.batch_size` must be a whole number from 1");
  expect_refusal({"--prompt", "a", "--batch-size", "many"}, 1, "not `many`");
  expect_refusal({"--prompt", "a", "--seconds", "-1"}, 2, "--seconds is `-1`");
  expect_refusal({"--prompt", "a", "--seconds", "1", "generation.max_new_tokens=9"}, 2,
                 "--seconds and generation.max_new_tokens were both given");
  expect_refusal({"--prompt", "a", "max_new_tokens=0"}, 1, "`generation.max_new_tokens` must be");
  expect_refusal({"--prompt", "a", "generation.window_tokens=5000"}, 1,
                 "`generation.window_tokens` is 5000, but the model has 2048 positions");
  expect_refusal({"--prompt", "a", "max_new_tokens=3000", "generation.kept_tokens=1502"}, 1,
                 "kept_tokens is 1502");
}

TEST_F(GenerateRefusals, Shards) {
  for (const char* shard : {"3/2", "2/2", "a/b"}) {
    expect_refusal({"--prompt", "a", "-o", path("a"), "--shard", shard}, 2,
                   "--shard is `" + std::string(shard) + "`; expected i/n");
  }
  expect_refusal({"--prompt", "a", "--shard", "0/2"}, 2, "the shards of a run must share");
}

TEST_F(GenerateRefusals, Outputs) {
  expect_refusal({"--prompt", "a", "--prompt", "b", "-o", path("a.wav")}, 2,
                 "is one sound, and many are to be made");
  expect_refusal({"--captions", write_captions(2), "-o", path("a.flac")}, 2, "expected a folder");
  expect_refusal({"--prompt", "a", "-o", path("no/a.wav")}, 4, "its folder does not exist");
  expect_refusal({"--prompt", "a", "-o", path("a.wav"), "generation.format=flac"}, 2,
                 "generation.format is flac, but the output is");
  expect_refusal({"--prompt", "a", "-o", folder.write("file", "")}, 4,
                 "it is a file, not a folder");
  for (const char* id : {"../a", ".."}) {
    expect_refusal({"--prompt", "a", "paths.run_id=" + std::string(id)}, 1,
                   "expected the name of a folder, without a path");
  }
}

TEST_F(GenerateRefusals, SoundsToGoOnFrom) {
  expect_refusal({"--prompt", "a", "--audio-prompt", path("none.wav")}, 4,
                 "cannot open the audio prompt `" + path("none.wav") + "`: no such file");
  const ProgramRun told = run({"--prompt", "a", "--audio-prompt", folder.write("a.wav", "no sound"),
                               "-o", path("out.wav")});
  EXPECT_EQ(told.code, 3) << told.err;
  EXPECT_FALSE(std::filesystem::exists(path("out.wav")));
}

TEST_F(GenerateRefusals, OptionsAndDevices) {
  expect_refusal({"--prompt", "a", "--promt", "b"}, 2,
                 "`tandem generate` has no option `--promt`. Did you mean `--prompt`?");
  expect_refusal({"--prompt", "a", "word"}, 1, "`word` is no setting");
  expect_refusal({"--prompt", "a", "model.dtype=float16"}, 1, "model.dtype asks for fp16");
  expect_refusal({"--prompt", "a", "--visible-gpus", "5"}, 1, "`5` names no GPU");
  expect_refusal({"--prompt", "a", "preset=tta/nothing"}, 1, "there is no `preset` called");
}

TEST_F(GenerateRefusals, AClipThatFitsNoDevice) {
  const Words words = words_of({"--prompt", "a", "max_new_tokens=1000"});
  const ProgramRun told = run_program(words, {{"TANDEM_SIMULATE_MEMORY", "1"}});
  EXPECT_EQ(told.code, 5) << told.err;
  EXPECT_NE(told.err.find("one clip of 1000 tokens takes"), std::string::npos) << told.err;
}

}  // namespace
}  // namespace tandem
