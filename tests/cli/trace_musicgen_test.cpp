#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "audio/file/write_audio.h"
#include "checkpoint/safetensors.h"
#include "support/program.h"

namespace tandem {
namespace {

const std::string fixtures = TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/";

ProgramRun trace_music(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"trace", "musicgen", "--model", model};
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words);
}

bool tells(const ProgramRun& run, const std::string& sentence) {
  return run.err.find(sentence) != std::string::npos;
}

// The fixtures' captions.
const std::vector<std::string> three_captions = {
    "--prompt", "80s pop track with bassy drums and synth",
    "--prompt", "a slow piano",
    "--prompt", "Energetic techno: acid bass lines, a driving beat; dark mood."};

std::map<std::string, at::Tensor> traced(const std::string& name,
                                         const std::vector<std::string>& more) {
  TestFolder folder;
  const std::string out = (folder / "trace.safetensors").string();
  std::vector<std::string> words = {"--out", out};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), three_captions.begin(), three_captions.end());
  const ProgramRun run = trace_music(fixtures + name, words);
  EXPECT_EQ(run.code, 0) << run.err;
  return read_safetensors(out).tensors;
}

at::Tensor reference(const std::string& name) {
  static const SafetensorsFile file = read_safetensors(fixtures + "tokens.safetensors");
  const at::Tensor found = file.tensors.at(name);
  return found.scalar_type() == at::kInt ? found.to(at::kLong) : found;
}

}  // namespace

TEST(TraceMusicgen, GivesWhatTransformersGives) {
  for (const std::string name : {"tiny", "odd", "stereo"}) {
    auto trace = traced(name, {"--max-new-tokens", "12", "--greedy", "--guidance-scale", "3"});
    const std::string start = name + "/greedy12/";
    for (const char* tensor : {"tokens", "codes"})
      EXPECT_TRUE(at::equal(trace.at(tensor), reference(start + tensor))) << name << " " << tensor;
    for (const char* tensor : {"logits_cond", "logits_uncond", "logits_cfg"})
      EXPECT_TRUE(at::allclose(trace.at(tensor), reference(start + tensor), 0, 1e-4)) << tensor;
    EXPECT_TRUE(at::equal(trace.at("text_ids"), reference(name + "/text_ids"))) << name;
    EXPECT_TRUE(at::equal(trace.at("text_mask"), reference(name + "/text_mask"))) << name;
    EXPECT_EQ(trace.at("text_states").size(1), trace.at("text_ids").size(1));
    EXPECT_EQ(trace.at("wav").size(1), name == "stereo" ? 2 : 1);
    EXPECT_GT(trace.at("wav").abs().max().item<double>(), 0);
  }
}

TEST(TraceMusicgen, DrawsAsTransformersWithItsSeed) {
  const auto trace = traced("tiny", {"--max-new-tokens", "40", "--rng", "hf", "--seed", "3"});
  EXPECT_TRUE(at::equal(trace.at("tokens"), reference("tiny/drawn/tokens")));
  const auto warped = traced("tiny", {"--max-new-tokens", "30", "--rng", "hf", "--seed", "4",
                                      "--top-k", "9", "--top-p", "0.8", "--temperature", "1.3"});
  EXPECT_TRUE(at::equal(warped.at("tokens"), reference("tiny/warped/tokens")));
}

TEST(TraceMusicgen, WithoutGuidanceThereIsNoUnconditionalRow) {
  const auto trace =
      traced("tiny", {"--max-new-tokens", "12", "--greedy", "--guidance-scale", "1"});
  EXPECT_EQ(trace.count("logits_uncond"), 0u);
  EXPECT_TRUE(at::equal(trace.at("tokens"), reference("tiny/unguided/tokens")));
}

TEST(TraceMusicgen, UnequalAudioPromptsHaveSilenceBeforeThem) {
  TestFolder folder;
  std::vector<std::string> words = {"--max-new-tokens", "9", "--greedy"};
  for (const int frames : {3, 5, 4}) {
    std::vector<float> samples;
    for (int i = 0; i < frames * 320; ++i)
      samples.push_back(0.5f * static_cast<float>((i * 37) % 200 - 100) / 100);
    const std::string file = (folder / (std::to_string(frames) + ".wav")).string();
    write_wav(file, samples, 1, 16000, SampleFormat::float32);
    words.insert(words.end(), {"--audio-prompt", file});
  }
  const auto trace = traced("tiny", words);
  EXPECT_EQ(trace.at("prompt_codes").sizes(), (at::IntArrayRef{3, 4, 5}));
  EXPECT_EQ(trace.at("codes").sizes(), (at::IntArrayRef{3, 4, 5 + 9 - 3}));
  EXPECT_TRUE(at::equal(trace.at("codes").narrow(2, 0, 5), trace.at("prompt_codes")));
  EXPECT_EQ(trace.at("tokens").size(2), 1 + 5 + 9);
}

TEST(TraceMusicgen, AsksForWhatItNeeds) {
  const auto complaint = [](const std::vector<std::string>& words) {
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.code, 2) << run.err;
    return run;
  };
  const std::vector<std::string> whole = {
      "trace", "musicgen", "--model", "/no/such",         "--out",
      "t.st",  "--prompt", "a",       "--max-new-tokens", "5"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = whole;
    words.insert(words.end(), more.begin(), more.end());
    return complaint(words);
  };
  EXPECT_TRUE(tells(complaint({"trace", "musicgen"}), "needs --model DIR, a MusicGen folder"));
  EXPECT_TRUE(tells(complaint({"trace", "musicgen", "--model", "."}), "needs --out FILE"));
  EXPECT_TRUE(tells(complaint({"trace", "musicgen", "--model", ".", "--out", "t"}),
                    "needs --prompt TEXT, a caption"));
  EXPECT_TRUE(tells(complaint({"trace", "musicgen", "--model", ".", "--out", "t", "--prompt", "a"}),
                    "needs --max-new-tokens N"));
  EXPECT_TRUE(tells(with({"--rng", "dice"}), "--rng is `dice`; expected `hf` or `counted`"));
  EXPECT_TRUE(tells(with({"--prompt", "b", "--prompt", "c", "--audio-prompt", "1.wav",
                          "--audio-prompt", "2.wav"}),
                    "2 times --audio-prompt for 3 captions"));
  EXPECT_TRUE(tells(with({"--voice", "v.wav"}), "`tandem trace musicgen` has no option `--voice`"));
  EXPECT_TRUE(tells(complaint({"trace", "xtts", "--prompt", "a"}),
                    "`tandem trace xtts` has no option `--prompt`"));
}

TEST(TraceMusicgen, RefusesMoreTokensThanPositions) {
  TestFolder folder;
  const ProgramRun run = trace_music(
      fixtures + "odd",
      {"--out", (folder / "t").string(), "--prompt", "a", "--max-new-tokens", "61", "--greedy"});
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(tells(run, "61 tokens need as many positions; the model has 60")) << run.err;
}

TEST(TraceMusicgen, TakesACaptionOfSeveralLinesAndAnEmptyOne) {
  TestFolder folder;
  const std::string out = (folder / "t").string();
  const ProgramRun run =
      trace_music(fixtures + "tiny", {"--out", out, "--prompt", "a slow\npiano", "--prompt", "",
                                      "--max-new-tokens", "5", "--greedy"});
  EXPECT_EQ(run.code, 0) << run.err;
  const auto trace = read_safetensors(out).tensors;
  EXPECT_EQ(trace.at("codes").sizes(), (at::IntArrayRef{2, 4, 5}));
  EXPECT_EQ(trace.at("text_mask")[1].sum().item<int64_t>(), 1);  // its end alone
}

}  // namespace tandem
