#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.h"
#include "support/tiny_xtts.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

const Program::Variables small_devices{{"TANDEM_SIMULATE_MEMORY", "64"}};

// Processes with `mark` in their environment that are no zombies.
int marked_processes(const std::string& mark) {
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    std::ostringstream environment;
    environment << std::ifstream(entry.path() / "environ").rdbuf();
    count += environment.str().find("TANDEM_TEST_MARK=" + mark) != std::string::npos;
  }
  return count;
}

class TuneRuns : public testing::Test {
 protected:
  TuneRuns() {
    std::string words;
    for (int i = 0; i < 4000; ++i) words += "all work and no play " + std::to_string(i) + "\n";
    text = folder.write("book.txt", words);
    folder.write("configs/preset/none.yaml", "");
  }
  std::vector<std::string> words_of(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"tune",  "--simulate-gpus", "1",    "--data", text, "--stage",
                                      "bytes", "--model-size",    "small"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static bool ran_out(const ProgramRun& run) {
    return run.code == 5 || run.err.find("ran out of memory") != std::string::npos;
  }
  TestFolder folder;
  std::string text;
};

}  // namespace

TEST_F(TuneRuns, AProbeOfAnyStageSaysHowManyClipsThereAre) {
  std::string table;
  double seconds = 0.5;
  for (const std::string name : {"a", "b", "c"}) {
    std::filesystem::create_directories(folder / "speech/wavs");
    write_recording(folder, "speech/wavs/" + name + ".wav", seconds += 0.1);
    table += name + "|some words|some words\n";
  }
  folder.write("speech/metadata.csv", table);
  const ProgramRun run =
      run_program({"tune", "--probe", "train", "--probe-seconds", "0.1", "--json", "--quiet",
                   "--simulate-gpus", "1", "--stage", "dvae", "--train-data",
                   (folder / "speech").string(), "data.batch_size=2", "data.validation_share=0"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["clips"], 3) << run.out;
}

TEST_F(TuneRuns, TheBatchFoundOnASmallDeviceFitsTwiceItDoesNotAndThePresetIsUsed) {
  const std::string configs = (folder / "configs").string();
  Program::Variables variables = small_devices;
  variables.emplace_back("TANDEM_CONFIG_DIR", configs);
  const ProgramRun run =
      run_program(words_of({"--minutes", "2.5", "--probe-seconds", "0.1", "--json"}), variables);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const int64_t batch = parse_int(json["found"]["data.batch_size"].get<std::string>()).value_or(0);
  ASSERT_GT(batch, 1) << run.out;
  EXPECT_EQ(json["gpu"], "simulated GPU");
  EXPECT_LE(json["found_reading"]["peak_bytes"].get<double>(), 0.875 * (64 << 20)) << run.out;
  EXPECT_NE(run.err.find("  left "), std::string::npos) << run.err;

  const auto probe = [&](int64_t size) {
    return run_program(
        words_of({"--probe", "train", "--probe-seconds", "0.1", "--json", "data.train_data=" + text,
                  "paths.checkpoint_dir=" + (folder / "run").string(),
                  "data.batch_size=" + std::to_string(size)}),
        variables);
  };
  const ProgramRun fits = probe(batch), twice = probe(2 * batch);
  EXPECT_EQ(fits.code, 0) << fits.err;
  EXPECT_FALSE(ran_out(fits)) << fits.err;
  EXPECT_TRUE(ran_out(twice)) << twice.out << twice.err;

  const std::string file = configs + "/local/simulated-gpu.yaml";
  EXPECT_NE(read_file(file).find("# simulated GPU: train stage bytes"), std::string::npos);
  for (const char* preset : {"auto", "local/simulated-gpu"}) {
    const ProgramRun train = run_program(
        {"train", "--simulate-gpus", "1", "--preset", preset, "--print-config"}, variables);
    ASSERT_EQ(train.code, 0) << train.err;
    const std::string line = "batch_size: " + std::to_string(batch);
    const size_t place = train.out.find(line);
    ASSERT_NE(place, std::string::npos) << train.out;
    const std::string whole = train.out.substr(place, train.out.find('\n', place) - place);
    EXPECT_NE(whole.find("preset local/simulated-gpu"), std::string::npos) << whole;
  }
}

TEST_F(TuneRuns, PrintsWhatItFoundAgainstTheGuess) {
  const std::string out = (folder / "found.yaml").string();
  const ProgramRun run = run_program(
      words_of({"--minutes", "2.5", "--probe-seconds", "0.1", "--out", out, "--batch-size", "4"}),
      small_devices);
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* words : {"the settings", "found", "data.batch_size", "memory", "tokens/s"})
    EXPECT_NE(run.out.find(words), std::string::npos) << words << "\n" << run.out;
  EXPECT_NE(run.out.find("use it with --config " + out), std::string::npos) << run.out;
  const ProgramRun train =
      run_program({"train", "--config", out, "--train-data", text, "--print-config"});
  EXPECT_NE(train.out.find("batch_size: 4"), std::string::npos) << train.out;
}

TEST_F(TuneRuns, FindsTheClipsThatFitAtOnce) {
  const std::vector<std::string> words = {"tune",
                                          "--for",
                                          "generate",
                                          "--simulate-gpus",
                                          "1",
                                          "--model",
                                          TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/tiny",
                                          "--max-new-tokens",
                                          "20"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run_program(more, {{"TANDEM_SIMULATE_MEMORY", "16"}});
  };
  const ProgramRun run = with({"--minutes", "2.5", "--probe-seconds", "0.1", "--out",
                               (folder / "music.yaml").string(), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const int64_t clips =
      parse_int(json["found"]["generation.batch_size"].get<std::string>()).value_or(0);
  ASSERT_GT(clips, 1) << run.out;
  const auto probe = [&](int64_t size) {
    return with({"--probe", "generate", "--probe-seconds", "0.1", "--json",
                 "generation.batch_size=" + std::to_string(size)});
  };
  const ProgramRun fits = probe(clips), twice = probe(2 * clips);
  EXPECT_EQ(fits.code, 0) << fits.err;
  EXPECT_EQ(twice.code, 5) << twice.out << twice.err;
  EXPECT_NE(read_file(folder / "music.yaml").find("generation:\n  batch_size: "),
            std::string::npos);
}

TEST_F(TuneRuns, OfLongClipsAPartIsMeasuredAndWholeOnesAreTold) {
  const auto probe = [](const std::string& tokens) {
    const ProgramRun run = run_program({"tune", "--probe", "generate", "--probe-seconds", "0.1",
                                        "--json", "--quiet", "--simulate-gpus", "1", "--model",
                                        TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/tiny",
                                        "--max-new-tokens", tokens, "generation.batch_size=2"});
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out);
  };
  const auto whole = probe("190"), part = probe("400");
  EXPECT_EQ(whole["how"], "");
  EXPECT_EQ(part["how"], "100 of 400 tokens, from the middle of a clip, scaled to all of it");
  EXPECT_GE(part["steps"], 1);
  // Twice as long a clip takes twice as long; a machine at other work may hide it once.
  bool slower = part["speed"].get<double>() < whole["speed"].get<double>();
  for (int i = 0; i < 5 && !slower; ++i)
    slower = probe("400")["speed"].get<double>() < probe("190")["speed"].get<double>();
  EXPECT_TRUE(slower);
  EXPECT_GT(part["peak_bytes"].get<double>(), whole["peak_bytes"].get<double>());
}

TEST_F(TuneRuns, CtrlCLeavesNothingBehind) {
  const std::string mark = folder.path().filename().string(), out = (folder / "x.yaml").string();
  Program program(words_of({"--minutes", "5", "--out", out}),
                  {{"TANDEM_TEST_MARK", mark}, {"TMPDIR", folder.path().string()}});
  bool measures = false;
  for (int i = 0; i < 2000 && !measures; ++i) {
    measures = marked_processes(mark) >= 2;
    if (!measures) usleep(10'000);
  }
  ASSERT_TRUE(measures);
  program.signal(SIGINT);
  const ProgramRun run = program.wait();
  EXPECT_EQ(run.code, 130) << run.err;
  EXPECT_EQ(marked_processes(mark), 0);
  EXPECT_FALSE(std::filesystem::exists(out));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with("tandem-tune-")) << entry.path();
}

TEST_F(TuneRuns, WrongUsageSaysWhatWasExpected) {
  const auto refused = [&](const std::vector<std::string>& words, int code, const char* sentence) {
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_NE(run.err.find(sentence), std::string::npos) << run.err;
  };
  refused({"tune", "--for", "sleep"}, 2, "--for is `sleep`; expected train or generate");
  refused({"tune", "--minutes", "0"}, 2, "--minutes is `0`; expected a number above 0");
  refused({"tune"}, 1, "no data was given to measure with");
  refused({"tune", "--for", "generate", "--model", "/no/such"}, 4,
          "there is no model folder `/no/such`");
  refused({"tune", "--probe", "nothing"}, 2, "--probe is `nothing`; expected train");
  const std::string mine = folder.write("mine.yaml", "data:\n  batch_size: 3\n");
  refused(words_of({"--out", mine}), 4, "was not written by `tandem tune`");
  refused({"tune", "--simulate-gpus", "1", "--stage", "bytes", "--data", "/no/such/book.txt",
           "--out", (folder / "y.yaml").string()},
          1, "the settings to begin with do not run: ");
}

}  // namespace tandem
