// The job scripts, run as plain programs; and, with stand-ins for srun and scontrol, as SLURM runs
// them. tests/parity/slurm.sh runs them on a real SLURM.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "support/program.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Says what it was called with; exits with $CODE for the dataset $FAIL; `wait=1` waits for a signal
// and then exits as tandem does.
constexpr const char* stand_in = R"(#!/usr/bin/env bash
printf 'tandem'; printf ' <%s>' "$@"; printf '\n'
case " $* " in *"data=tta/${FAIL:-nothing} "*) echo broken >&2; exit "${CODE:-3}" ;; esac
case " $* " in *" wait=1 "*) ;; *) exit 0 ;; esac
trap 'echo "told USR1"; exit 143' USR1
trap 'echo "told TERM"; exit 143' TERM
trap 'echo "told INT"; exit 130' INT
touch waiting
for i in {1..200}; do sleep 0.05; done
exit 9
)";

class ScriptFolder {
 public:
  ScriptFolder() { program("fake-tandem", stand_in); }

  void program(const std::string& name, const std::string& text) const {
    folder_.write(name, text);
    fs::permissions(folder_ / name, fs::perms::owner_all);
  }
  // `before` stands before the script's words: variables, for example.
  ProgramRun run(const std::string& script, const std::string& words,
                 const std::string& before = "") const {
    return shell(before + " TANDEM=./fake-tandem " + path_of(script) + " " + words);
  }
  ProgramRun shell(const std::string& line) const {
    const std::string where = "cd '" + folder_.path().string() + "' && ";
    const std::string clean = "unset ${!SLURM_*}; export PATH=$PWD:$PATH; ";
    folder_.write("line", where + clean + line + "\n");
    const int status =
        std::system(("bash '" + (folder_ / "line").string() + "' >'" + (folder_ / "out").string() +
                     "' 2>'" + (folder_ / "err").string() + "'")
                        .c_str());
    return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .out = text_of("out"),
            .err = text_of("err")};
  }
  static std::string path_of(const std::string& script) {
    return TANDEM_SOURCE_DIR "/scripts/" + script + ".sh";
  }
  std::string text_of(const fs::path& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name.string()).rdbuf();
    return text.str();
  }
  std::vector<std::string> logs() const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_ / "logs", ignored))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  // As sbatch does: a copy named slurm_script, output to the log files, stand-ins for its tools.
  ProgramRun as_job(const std::string& script, const std::string& words, const std::string& state,
                    const std::string& before = "") const {
    program("srun",
            "#!/usr/bin/env bash\nprintf 'srun %s %s\\n' \"$1\" \"$2\"\n"
            "while [ \"${1#-}\" != \"$1\" ]; do shift; done\nexec \"$@\"\n");
    program("scontrol",
            "#!/usr/bin/env bash\necho \"scontrol $*\" >>requests\n"
            "[ \"$1\" != show ] || printf '   JobState=" +
                state + " Reason=None\\n   Command=" + path_of(script) + "\\n'\n");
    fs::copy_file(path_of(script), folder_ / "slurm_script", fs::copy_options::overwrite_existing);
    return shell("export SLURM_JOB_ID=17 SLURM_SUBMIT_DIR=$PWD SLURM_CPUS_PER_TASK=8; " + before +
                 " TANDEM=./fake-tandem ./slurm_script " + words);
  }

 private:
  TestFolder folder_;
};

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Signals the script once its tandem waits.
std::string signalled(const std::string& signal, const std::string& words) {
  return words +
         " wait=1 & script=$!; for i in {1..200}; do [ -e waiting ] && break; sleep 0.05; "
         "done; kill -" +
         signal + " $script; wait $script";
}

}  // namespace

TEST(TtaScripts, PassPresetBatchSizeAndOverridesOn) {
  const ScriptFolder folder;
  const ProgramRun run = folder.run("run_tta_2gpu",
                                    "-p tta/plgrid_musiccaps -b 96 data=tta/musiccaps_captions "
                                    "model.model.max_new_tokens=512 paths.run_id=mine");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(says(run.out,
                   "tandem <generate> <--preset> <tta/plgrid_musiccaps> "
                   "<generation.batch_size=96> <data=tta/musiccaps_captions> "
                   "<model.model.max_new_tokens=512> <paths.run_id=mine>\n"))
      << run.out;
}

TEST(TtaScripts, TheBatchSizeIs64UnlessGiven) {
  const ScriptFolder folder;
  EXPECT_TRUE(says(folder.run("run_tta_2gpu", "data=x").out, "<generation.batch_size=64>"));
  EXPECT_TRUE(
      says(folder.run("run_tta_2gpu", "--batch-size=auto").out, "<generation.batch_size=auto>"));
  const std::string own = folder.run("run_tta_2gpu", "batch_size=8").out;
  EXPECT_TRUE(says(own, "<batch_size=8>")) << own;
  EXPECT_FALSE(says(own, "<generation.batch_size=64>")) << own;
}

TEST(TtaScripts, RefuseWithExitCode1) {
  const ScriptFolder folder;
  const auto refused = [&](const std::string& script, const std::string& words,
                           const std::string& sentence) {
    const ProgramRun run = folder.run(script, words);
    EXPECT_EQ(run.code, 1) << words;
    EXPECT_TRUE(says(run.err, script + ": error: " + sentence)) << run.err;
    EXPECT_FALSE(says(run.out, "tandem <generate>")) << words;
  };
  for (const char* script : {"run_tta_2gpu", "run_all_tta_2gpu", "run_tta_array"}) {
    refused(script, "--gpus 2", "unknown option `--gpus`.");
    refused(script, "-x", "unknown option `-x`.");
    refused(script, "-b", "-b needs a value.");
    refused(script, "-b many", "the batch size is `many`; expected a whole number above 0");
    refused(script, "words", "`words` is neither an option nor key=value.");
  }
  refused("run_all_tta_2gpu", "data=tta/x", "data=tta/x chooses one dataset");
  refused("run_tta_array", "data=tta/x", "how many shards?");
  refused("run_tta_array", "--shards 3 --shard 3", "there is no shard 3 of 3");
  refused("run_tta_array", "--shards three", "--shards is `three`; expected a whole number.");
  EXPECT_EQ(folder.logs(), std::vector<std::string>{});
}

TEST(TtaScripts, SayWhenThereIsNoTandem) {
  const ScriptFolder folder;
  const ProgramRun run = folder.shell("TANDEM=./none " + ScriptFolder::path_of("run_tta_2gpu"));
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(says(run.err, "TANDEM is `./none`, which is no program.")) << run.err;
}

TEST(TtaScripts, RunDirectlyTheyWriteLogsToo) {
  const ScriptFolder folder;
  const ProgramRun run = folder.run("run_tta_2gpu", "data=tta/a", "FAIL=a CODE=5");
  EXPECT_EQ(run.code, 5);
  const std::vector<std::string> logs = folder.logs();
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_TRUE(logs[0].starts_with("run_tta_2gpu_") && logs[0].ends_with(".err")) << logs[0];
  EXPECT_EQ(folder.text_of("logs/" + logs[0]), run.err);
  EXPECT_EQ(folder.text_of("logs/" + logs[1]), run.out);
  EXPECT_EQ(run.err, "broken\n");
}

TEST(TtaScripts, HandSignalsOn) {
  for (const auto& [signal, code] : {std::pair{"TERM", 143}, {"USR1", 143}, {"INT", 130}}) {
    const ScriptFolder folder;
    // A shell's background commands ignore Ctrl-C, unless it has job control.
    const ProgramRun run = folder.run("run_tta_2gpu", signalled(signal, "data=x"), "set -m;");
    EXPECT_EQ(run.code, code) << signal;
    EXPECT_EQ(times(run.out, std::string("told ") + signal), 1) << run.out;
  }
}

TEST(TtaScripts, AllFiveDatasetsRunThoughOneFails) {
  const ScriptFolder folder;
  const ProgramRun run = folder.run("run_all_tta_2gpu", "paths.run_id=r", "FAIL=base_vae_captions");
  EXPECT_EQ(run.code, 3);
  size_t last = 0;
  for (const char* dataset : {"zero_shot_captions", "base_vae_captions", "fine_tuned_vae_captions",
                              "musiccaps_captions", "lp_musiccaps_captions"}) {
    const std::string words = std::string(
                                  "<--preset> <tta/plgrid_musiccaps> "
                                  "<generation.batch_size=64> <paths.run_id=r_") +
                              dataset + "> <data=tta/" + dataset + ">\n";
    const size_t place = run.out.find(words);
    ASSERT_NE(place, std::string::npos) << words << run.out;
    EXPECT_GT(place, last);
    last = place;
  }
  EXPECT_EQ(times(run.out, " done "), 4) << run.out;
  EXPECT_TRUE(says(run.out, "base_vae_captions          FAILED (3) ")) << run.out;
  EXPECT_TRUE(says(run.err, "base_vae_captions failed with exit code 3; the others go on."));
}

TEST(TtaScripts, AllFiveStopTogether) {
  const ScriptFolder folder;
  const ProgramRun run = folder.run("run_all_tta_2gpu", signalled("TERM", ""), "set -m;");
  EXPECT_EQ(run.code, 143);
  EXPECT_EQ(times(run.out, "tandem <generate>"), 1) << run.out;
}

TEST(TtaScripts, AnArrayRunDirectlyMakesEveryShardInOneFolder) {
  const ScriptFolder folder;
  const ProgramRun run = folder.run("run_tta_array", "-n 3 data=x paths.run_id=r");
  EXPECT_EQ(run.code, 0);
  for (const char* shard : {"0/3", "1/3", "2/3"})
    EXPECT_TRUE(says(run.out, std::string("<paths.run_id=r> <--shard> <") + shard + ">")) << shard;
  EXPECT_EQ(times(folder.run("run_tta_array", "-n 3 -i 1 data=x").out, "<--shard>"), 1);
}

TEST(TtaScripts, AnArraysTaskMakesItsShard) {
  const ScriptFolder folder;
  const std::string array =
      "export SLURM_ARRAY_JOB_ID=40 SLURM_ARRAY_TASK_ID=2 "
      "SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=0 ";
  const ProgramRun run =
      folder.as_job("run_tta_array", "data=x", "RUNNING", array + "SLURM_ARRAY_TASK_MAX=2;");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(says(run.out, "<paths.run_id=job_40> <--shard> <2/3>")) << run.out;
  const ProgramRun list =
      folder.as_job("run_tta_array", "data=x", "RUNNING", array + "SLURM_ARRAY_TASK_MAX=5;");
  EXPECT_EQ(list.code, 1);
  EXPECT_TRUE(says(list.err, "the array is no --array=0-2; say with --shards")) << list.err;
}

TEST(TtaScripts, AJobIsAStepOfItsOwnWithAStableRunFolder) {
  const ScriptFolder folder;
  const ProgramRun run = folder.as_job("run_tta_2gpu", "data=x", "RUNNING");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(says(run.out, "srun --ntasks=1 --cpus-per-task=8\n")) << run.out;
  EXPECT_TRUE(says(run.out, "<paths.run_id=job_17>")) << run.out;
  EXPECT_EQ(folder.logs(), std::vector<std::string>{});  // sbatch writes them
  EXPECT_FALSE(says(folder.text_of("requests"), "requeue"));
}

TEST(TtaScripts, AJobThatIsToldToStopIsRequeued) {
  for (const char* signal : {"USR1", "TERM"}) {
    const ScriptFolder folder;
    const ProgramRun run =
        folder.as_job("run_tta_2gpu", signalled(signal, "data=x"), "RUNNING", "set -m;");
    EXPECT_EQ(run.code, 143) << signal;
    EXPECT_TRUE(says(run.out, "told USR1")) << run.out;  // srun would not survive a TERM
    EXPECT_TRUE(says(folder.text_of("requests"), "scontrol requeue 17\n")) << signal;
  }
}

TEST(TtaScripts, AStepThatWasStoppedRequeuesItsJob) {
  const ScriptFolder folder;
  const ProgramRun run =
      folder.as_job("run_tta_2gpu", "data=tta/a", "RUNNING", "export FAIL=a CODE=143;");
  EXPECT_EQ(run.code, 143);
  EXPECT_TRUE(says(folder.text_of("requests"), "scontrol requeue 17\n"));
}

TEST(TtaScripts, ATaskOfAnArrayRequeuesItselfAlone) {
  const ScriptFolder folder;
  folder.as_job("run_tta_array", "data=tta/a", "RUNNING",
                "export FAIL=a CODE=143 SLURM_ARRAY_JOB_ID=17 SLURM_ARRAY_TASK_ID=1 "
                "SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=1;");
  EXPECT_TRUE(says(folder.text_of("requests"), "scontrol requeue 17_1\n"));
}

TEST(TtaScripts, AJobThatSlurmEndsIsNotRequeued) {
  const ScriptFolder folder;
  const ProgramRun run =
      folder.as_job("run_tta_2gpu", signalled("TERM", "data=x"), "COMPLETING", "set -m;");
  EXPECT_EQ(run.code, 143);
  EXPECT_TRUE(says(run.out, "SLURM ends job 17 (COMPLETING)")) << run.out;
  EXPECT_FALSE(says(folder.text_of("requests"), "requeue"));
}

TEST(TtaScripts, AJobThatFailsOrWasRequeuedTooOftenIsNotRequeued) {
  const ScriptFolder folder;
  EXPECT_EQ(folder.as_job("run_tta_2gpu", "data=tta/a", "RUNNING", "export FAIL=a CODE=3;").code,
            3);
  const ProgramRun often = folder.as_job("run_tta_2gpu", "data=tta/a", "RUNNING",
                                         "export FAIL=a CODE=143 SLURM_RESTART_COUNT=2 "
                                         "TANDEM_MAX_REQUEUES=2;");
  EXPECT_EQ(often.code, 143);
  EXPECT_TRUE(says(often.err, "job 17 was requeued 2 times already")) << often.err;
  EXPECT_FALSE(says(folder.text_of("requests"), "requeue"));
}

}  // namespace tandem
