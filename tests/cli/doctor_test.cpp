#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/program.h"
#include "support/tiny_xtts.h"

namespace tandem {
namespace {

using DoctorJson = nlohmann::json;

DoctorJson doctor_finds(const DoctorJson& document, const std::string& name) {
  for (const auto& check : document)
    if (check["name"] == name) return check;
  ADD_FAILURE() << "no check " << name << " in " << document.dump(1);
  return {};
}

bool doctor_says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// No GPU, whatever the machine has.
const Program::Variables no_gpu = {{"TANDEM_NVML_LIBRARY", "libno-such-nvml.so"},
                                   {"TANDEM_CUDA_LIBRARY", "libno-such-cuda.so"}};

TEST(Doctor, ThisMachineWithoutAGpuPasses) {
  const ProgramRun run = run_program({"doctor"}, no_gpu);
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_TRUE(doctor_says(run.out, "WARN  driver        neither NVML nor a CUDA driver"))
      << run.out;
  EXPECT_TRUE(doctor_says(run.out, "WARN  GPUs          none visible")) << run.out;
  EXPECT_TRUE(doctor_says(run.out, "  pinned memory ")) << run.out;
  EXPECT_TRUE(doctor_says(run.out, "  shared memory ")) << run.out;
  EXPECT_TRUE(doctor_says(run.out, "0 failed, ")) << run.out;
}

TEST(Doctor, GpusThroughNvmlAreLookedAtOneByOne) {
  const ProgramRun run = run_program(
      {"doctor", "--json"}, {{"TANDEM_NVML_LIBRARY", TANDEM_FAKE_NVML}, {"TANDEM_FAKE_GPUS", "3"}});
  const auto document = DoctorJson::parse(run.out);
  EXPECT_EQ(doctor_finds(document, "driver")["found"],
            "580.99.01, serves CUDA 13.0; LibTorch wants 13.0");
#ifdef TANDEM_WITH_CUDA
  EXPECT_EQ(doctor_finds(document, "GPU 2")["verdict"], "PASS");
  const auto peers = doctor_finds(document, "peer access");
  EXPECT_EQ(peers["verdict"], "WARN");
  EXPECT_EQ(peers["found"],
            "1 of 3 pairs read each other's memory (1 over NVLink), not GPU 0 and GPU 2");
#endif
}

TEST(Doctor, ASickGpuIsNamed) {
  const ProgramRun run =
      run_program({"doctor", "--json"}, {{"TANDEM_NVML_LIBRARY", TANDEM_FAKE_NVML},
                                         {"TANDEM_FAKE_GPUS", "2"},
                                         {"TANDEM_FAKE_ECC", "1:3"},
                                         {"TANDEM_FAKE_THROTTLE", "64"},
                                         {"TANDEM_FAKE_TENANT", "0:4000000"}});
  EXPECT_EQ(run.code, 1) << run.out;
  const auto document = DoctorJson::parse(run.out);
  EXPECT_EQ(doctor_finds(document, "GPU 0 memory")["verdict"], "PASS");
  const auto errors = doctor_finds(document, "GPU 1 memory");
  EXPECT_EQ(errors["verdict"], "FAIL");
  EXPECT_EQ(errors["found"],
            "ECC on, 3 uncorrected and 0 corrected errors since the driver started");
  const auto clocks = doctor_finds(document, "GPU 1 clocks");
  EXPECT_EQ(clocks["verdict"], "WARN");
  EXPECT_EQ(clocks["found"], "1215 of 1980 MHz, slowed down by the hardware to cool");
  const auto tenants = doctor_finds(document, "GPU 0 tenants");
  EXPECT_EQ(tenants["verdict"], "WARN");
  EXPECT_EQ(tenants["found"], "process 4000000 with 2.0 GiB");
  EXPECT_EQ(doctor_finds(document, "GPU 1 tenants")["found"], "no other process");
}

TEST(Doctor, AnOldDriverFails) {
  const ProgramRun run = run_program({"doctor"}, {{"TANDEM_NVML_LIBRARY", TANDEM_FAKE_NVML},
                                                  {"TANDEM_FAKE_CUDA_VERSION", "12040"},
                                                  {"TANDEM_FAKE_GPUS", "1"}});
#ifdef TANDEM_WITH_CUDA
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(doctor_says(run.out, "-> update the driver to one that serves CUDA 13")) << run.out;
#else
  EXPECT_EQ(run.code, 0);
#endif
}

TEST(Doctor, SettingsDataModelAndRoomAreLookedAt) {
  const TestFolder folder;
  const std::string model = write_tiny_xtts(folder);
  std::filesystem::create_directories(folder / "d/wavs");
  write_recording(folder, "d/wavs/a.wav", 0.6);
  folder.write("d/metadata.csv", "a|some words|some words\n");
  const std::string file =
      folder.write("c.yaml", "data:\n  num_workers: 4\n  train_data: " + (folder / "d").string() +
                                 "\ntraining:\n  stage: gpt\nmodel:\n  pretrained: " + model +
                                 "\npaths:\n  checkpoint_dir: " + (folder / "run").string() + "\n");
  const ProgramRun run =
      run_program({"doctor", "--simulate-gpus", "1", "--config", file, "--json"});
  EXPECT_EQ(run.code, 0) << run.out;
  const auto document = DoctorJson::parse(run.out);
  EXPECT_EQ(doctor_finds(document, "workers")["verdict"], "WARN");
  EXPECT_EQ(doctor_finds(document, "graph mode")["verdict"], "PASS");
  EXPECT_EQ(doctor_finds(document, "formats")["found"],
            "wav pcm16; 100.0 % read by the native reader");
  EXPECT_EQ(doctor_finds(document, "model")["verdict"], "PASS");
  EXPECT_EQ(doctor_finds(document, "room to save")["verdict"], "PASS");
  EXPECT_TRUE(doctor_says(doctor_finds(document, "reading data")["found"], "of 1 files"))
      << run.out;
}

TEST(Doctor, AHalfCopiedModelFails) {
  const TestFolder folder;
  const std::string model = write_tiny_xtts(folder);
  std::filesystem::resize_file(model + "/model.safetensors", 100000);
  const ProgramRun run = run_program({"doctor", "--simulate-gpus", "1", "--model", model});
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(doctor_says(run.out, "FAIL  model")) << run.out;
  EXPECT_TRUE(doctor_says(run.out, "model.safetensors")) << run.out;
}

TEST(Doctor, FixShowsADiffAndTheResultLoads) {
  const TestFolder folder;
  const std::string file = folder.write(
      "c.yaml", "# mine\ntraining:\n  enable_graph_mode: false  # why?\n  epohcs: 2\n");
  const ProgramRun run = run_program({"doctor", "--simulate-gpus", "1", "--fix", "--config", file});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_TRUE(doctor_says(run.out,
                          "@@ -1,4 +1,4 @@\n # mine\n training:\n"
                          "-  enable_graph_mode: false  # why?\n-  epohcs: 2\n"
                          "+  enable_graph_mode: true  # why?\n+  epochs: 2\n"))
      << run.out;
  EXPECT_TRUE(doctor_says(run.out, "`" + file + "` loads")) << run.out;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  ASSERT_EQ(names.size(), 2u);
  EXPECT_TRUE(names[1].starts_with("c.yaml.bak-"));
  const ProgramRun again =
      run_program({"doctor", "--simulate-gpus", "1", "--fix", "--config", file, "--json"});
  EXPECT_EQ(doctor_finds(DoctorJson::parse(again.out), "fix")["found"],
            "nothing to change in `" + file + "`");
}

TEST(Doctor, FixIsRecommendedWhereItHelps) {
  const TestFolder folder;
  const auto advice = [&](const std::string& file) {
    const ProgramRun run =
        run_program({"doctor", "--simulate-gpus", "1", "--config", file, "--json"});
    EXPECT_EQ(run.code, 1) << run.out;
    const auto check = doctor_finds(DoctorJson::parse(run.out), "config");
    EXPECT_EQ(check["verdict"], "FAIL");
    return check["advice"].get<std::string>();
  };
  const std::string mendable = folder.write("a.yaml", "training:\n  epohcs: 2\n");
  EXPECT_TRUE(doctor_says(advice(mendable), "tandem doctor --fix --config " + mendable));
  EXPECT_EQ(advice(folder.write("b.yaml", "data: [1, 2\ntraining: {\n")), "mend it by hand");
  EXPECT_EQ(advice((folder / "none.yaml").string()), "");
}

TEST(Doctor, FixRefusesAReadOnlyFileInOneSentence) {
  const TestFolder folder;
  const std::string file = folder.write("c.yaml", "num_workers: 2\n");
  std::filesystem::permissions(file, std::filesystem::perms(0444));
  const ProgramRun run = run_program({"doctor", "--simulate-gpus", "1", "--fix", "--config", file});
  EXPECT_EQ(run.code, 4);
  EXPECT_TRUE(doctor_says(run.err, "`" + file + "` may not be written, so it was not changed"))
      << run.err;
}

TEST(Doctor, QuestionsThatDoNotGoTogetherAreRefused) {
  const ProgramRun both = run_program({"doctor", "--fix", "--test"});
  EXPECT_EQ(both.code, 2);
  EXPECT_TRUE(doctor_says(both.err, "--test and --fix are two questions")) << both.err;
  EXPECT_EQ(run_program({"doctor", "--model-size", "tiny"}).code, 2);
}

TEST(Doctor, TestRunsRealStepsAndSkipsWhatNeedsAGpu) {
  const ProgramRun run = run_program({"doctor", "--test", "--json"}, no_gpu);
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  const auto document = DoctorJson::parse(run.out);
  ASSERT_EQ(document.size(), 5u);
  EXPECT_EQ(document[0]["name"], "eager step");
  EXPECT_EQ(document[0]["verdict"], "PASS");
  EXPECT_TRUE(doctor_says(document[1]["found"], " times the eager speed"));
  EXPECT_EQ(document[2]["verdict"], "SKIP");
  EXPECT_EQ(document[2]["found"], "needs a GPU: there is nothing to capture on /CPU:0");
  EXPECT_EQ(document[4]["name"], "placement");
  EXPECT_EQ(document[4]["verdict"], "SKIP");
}

}  // namespace
}  // namespace tandem
