// The program as a whole: commands, help, errors, exit codes, logs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace tandem {
namespace {

TEST(Program, WithoutACommandShowsHelpAndExitsTwo) {
  const ProgramRun run = run_program({});
  EXPECT_EQ(run.code, 2);
  for (const char* command :
       {"train", "devices", "doctor", "config", "help", "version", "completion"}) {
    EXPECT_NE(run.out.find(std::string("\n  ") + command), std::string::npos) << command;
  }
}

TEST(Program, HelpOfEveryCommandNamesItsOptions) {
  for (const char* command :
       {"train", "devices", "doctor", "config", "help", "version", "completion"}) {
    const ProgramRun by_help = run_program({"help", command}),
                     by_flag = run_program({command, "--help"});
    EXPECT_EQ(by_help.code, 0);
    EXPECT_EQ(by_help.out, by_flag.out);
    EXPECT_NE(by_help.out.find("Usage: tandem " + std::string(command)), std::string::npos);
  }
  const std::string train = run_program({"help", "train"}).out;
  for (const char* flag : {"--stage", "--model-size", "--config", "--preset", "--checkpoint-dir",
                           "--epochs", "--max-steps", "--fresh", "--dry-run", "--multi-gpu",
                           "--visible-gpus", "--grad-accum", "--data-gpu", "--model-gpu",
                           "--simulate-gpus", "--split-gpu", "--print-config", "--log-file"}) {
    EXPECT_NE(train.find(flag), std::string::npos) << flag;
  }
}

TEST(Program, AnswersWrongUsageInOneLineWithTheNearestNameAndExitTwo) {
  const auto answer = [](const std::vector<std::string>& words) {
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.code, 2);
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  EXPECT_EQ(answer({"trian"}),
            "error: there is no command `trian`. Did you mean `train`? (hint: tandem help)\n");
  EXPECT_EQ(answer({"train", "--bach-size", "4"}),
            "error: `tandem train` has no option `--bach-size`. Did you mean `--batch-size`? "
            "(hint: tandem help train)\n");
  EXPECT_EQ(answer({"devices", "--jsn"}),
            "error: `tandem devices` has no option `--jsn`. Did you mean `--json`? (hint: tandem "
            "help devices)\n");
  EXPECT_EQ(answer({"devices", "extra"}),
            "error: `tandem devices` takes no argument `extra` (hint: tandem help devices)\n");
  EXPECT_EQ(answer({"devices", "--simulate-gpus", "two"}),
            "error: --simulate-gpus is `two`; expected a whole number\n");
  EXPECT_NE(answer({"train", "--batch-size"}).find("--batch-size"), std::string::npos);
  EXPECT_NE(answer({"help", "trian"}).find("Did you mean `train`?"), std::string::npos);
  EXPECT_NE(answer({"completion", "fish"}).find("`bash` only"), std::string::npos);
}

TEST(Program, AnswersAWrongSettingWithItsPlaceAndExitOne) {
  const ProgramRun unknown =
      run_program({"train", "--dry-run", "--simulate-gpus", "1", "bach_size=3"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("batch_size"), std::string::npos);
  TestFolder folder;
  const std::string file = folder.write("c.yaml", "training:\n  epochs: many\n");
  const ProgramRun typed =
      run_program({"train", "--dry-run", "--simulate-gpus", "1", "--config", file});
  EXPECT_EQ(typed.code, 1);
  EXPECT_NE(typed.err.find(file + ":2"), std::string::npos) << typed.err;
  const ProgramRun missing = run_program({"train", "--dry-run", "--config", file + ".not"});
  EXPECT_EQ(missing.code, 4);
}

TEST(Program, VersionNamesItsParts) {
  const ProgramRun run = run_program({"version"});
  EXPECT_EQ(run.code, 0);
  for (const char* part : {"tandem 0.", "LibTorch  2.11.0", "CUDA", "compiler"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part;
  }
}

TEST(Program, PrintConfigLoadsAgainToTheSame) {
  TestFolder folder;
  const ProgramRun first =
      run_program({"train", "--print-config", "--preset", "rtx4090", "--epochs", "7", "seed=3"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("batch_size: 32"), std::string::npos);
  EXPECT_NE(first.out.find("# preset rtx4090"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("# --epochs"), std::string::npos);
  const std::string file = folder.write("c.yaml", first.out);
  const ProgramRun second = run_program({"train", "--print-config", "--config", file});
  ASSERT_EQ(second.code, 0) << second.err;
  const auto without_comments = [](const std::string& text) {
    std::string out;
    bool comment = false;
    for (const char c : text) {
      if (c == '#') comment = true;
      if (c == '\n') comment = false;
      if (!comment && c != ' ') out += c;
    }
    return out;
  };
  EXPECT_EQ(without_comments(first.out), without_comments(second.out));
}

TEST(Program, DevicesPrintsOneJsonDocument) {
  const ProgramRun run =
      run_program({"devices", "--json"}, {{"TANDEM_NVML_LIBRARY", TANDEM_FAKE_NVML},
                                          {"TANDEM_FAKE_GPUS", "2"},
                                          {"CUDA_VISIBLE_DEVICES", "1,0"}});
  ASSERT_EQ(run.code, 0);
  const auto document = nlohmann::json::parse(run.out);
#ifdef TANDEM_WITH_CUDA
  ASSERT_EQ(document["gpus"].size(), 2u);
  EXPECT_EQ(document["gpus"][0]["uuid"], "GPU-00000001-pretend");
  EXPECT_EQ(document["gpus"][0]["peers"], nlohmann::json::array({0}));
#endif
  EXPECT_EQ(document["driver"], "580.99.01");
}

TEST(Program, DoctorFailsOnAnOldDriverAndABrokenConfig) {
  TestFolder folder;
  const std::string file = folder.write("c.yaml", "nonsense: 1\n");
  const ProgramRun config = run_program({"doctor", "--simulate-gpus", "1", "--config", file});
  EXPECT_EQ(config.code, 1);
  EXPECT_NE(config.out.find("FAIL  config"), std::string::npos);
  const ProgramRun fine = run_program({"doctor", "--simulate-gpus", "1", "--json"});
  EXPECT_EQ(fine.code, 0) << fine.out;
  EXPECT_TRUE(nlohmann::json::parse(fine.out).is_array());
}

TEST(Program, BashCompletionCompletes) {
  const ProgramRun run = run_program({"completion", "bash"});
  TestFolder folder;
  const std::string script = folder.write("completion.sh", run.out);
  const auto completes = [&](const std::string& words, int at) {
    const std::string command = "bash -c 'source " + script + "; COMP_WORDS=(" + words +
                                "); COMP_CWORD=" + std::to_string(at) +
                                "; _tandem; echo ${COMPREPLY[@]}' > " +
                                (folder / "answer").string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ostringstream text;
    text << std::ifstream(folder / "answer").rdbuf();
    return text.str();
  };
  EXPECT_EQ(completes("tandem trai", 1), "train\n");
  EXPECT_EQ(completes("tandem train --data-gpu-m", 2), "--data-gpu-memory\n");
  EXPECT_EQ(completes("tandem help doc", 2), "doctor\n");
}

}  // namespace
}  // namespace tandem
