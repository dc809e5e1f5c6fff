// Every verdict from figures, beside the figures that must not bring it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "config/schema.h"
#include "observe/diagnose/diagnosis_text.h"

namespace tandem {
namespace {

SeriesFigures steady(double seconds) {
  return {.count = 40, .mean = seconds, .median = seconds, .p95 = seconds, .p99 = seconds};
}

// All is well: steps of 20 ms, stages that take a fraction of it.
struct DiagnoseCase {
  Figures figures;
  Circumstances now;
  DiagnoseCase() {
    figures.replay = steady(0.020);
    figures.fed = steady(0.0202);
    figures.wait = 0.0001;
    figures.host = {.wall = 0.010, .on_core = 0.009, .in_line = 0.0005};
    figures.prepare = 0.002;
    figures.cores = 8;
    figures.rows = 16;
    figures.operations = 100;
    figures.launch_cost = 2e-6;
    figures.queues_work = true;
    figures.devices = {{.name = "/GPU:0",
                        .holds_model = true,
                        .prepares = true,
                        .own_step = 0.020,
                        .utilisation = steady(0.95),
                        .peak = 400,
                        .limit = 1000}};
    now.config.data.num_workers = 4;
    now.config.data.train_data = "corpus";
    now.strategy = StrategyKind::one_device;
    now.visible_gpus = 1;
    now.queue_capacity = 50;
    now.data_on_model = true;
  }
  // The feed gives a batch every so many seconds.
  void starve(double seconds) {
    figures.fed = steady(seconds);
    figures.wait = seconds - figures.replay.median;
  }
  void second_gpu_holds_the_model() {
    now.strategy = StrategyKind::dual;
    now.data_on_model = false;
    now.visible_gpus = 2;
    now.config.data.data_gpu = "0";
    now.config.data.model_gpu = "1";
    figures.devices.push_back(figures.devices.front());
    figures.devices[0].holds_model = false;
    figures.devices[1].name = "/GPU:1";
    figures.devices[1].index = 1;
    figures.devices[1].prepares = false;
  }
  Diagnosis judged() const { return judge(figures, now); }
  std::string verdict() const { return to_string(judged().verdict); }
  std::string setting() const {
    const Diagnosis diagnosis = judged();
    return diagnosis.remedy.settings.empty() ? "" : diagnosis.remedy.settings.front();
  }
};

}  // namespace

TEST(DiagnoseRules, AllWellIsFed) {
  const DiagnoseCase well;
  EXPECT_EQ(well.verdict(), "fed");
  EXPECT_TRUE(well.judged().remedy.empty());
  EXPECT_DOUBLE_EQ(well.judged().expected_gain, 0);
  EXPECT_FALSE(well.judged().evidence.empty());
}

TEST(DiagnoseRules, ReadersThatSleepMeanSlowStorage) {
  DiagnoseCase slow;
  slow.figures.host = {.wall = 0.400, .on_core = 0.020, .in_line = 0.001};
  slow.starve(0.100);
  EXPECT_EQ(slow.verdict(), "slow-storage");
  EXPECT_EQ(slow.setting(), "data.num_workers=25");  // 400 ms in 0.8 of 20 ms
  EXPECT_NEAR(slow.judged().expected_gain, 0.8, 1e-6);
  // A disk that gives four readers no more than one is full: fewer bytes help, not more readers.
  slow.figures.storage = {
      .batch_bytes = 4e6, .rate = 40e6, .rate_of_four = 42e6, .useful_readers = 1};
  EXPECT_EQ(slow.verdict(), "slow-storage");
  slow.figures.batch_bytes = 1e6;
  slow.now.config.training.stage = "dvae";
  EXPECT_EQ(slow.judged().remedy.command,
            (std::vector<std::string>{"prepare", "corpus", "--cache", "mels", "data.mel=xtts_dvae",
                                      "data.sample_rate=22050"}));
  EXPECT_NEAR(slow.judged().expected_gain, 1 - 0.025 / 0.100, 1e-6);  // a quarter of the reading
  // One that serves sixteen at once wants so many, and no more.
  slow.figures.storage.useful_readers = 16;
  EXPECT_EQ(slow.setting(), "data.num_workers=16");
  slow.now.config.data.num_workers = 16;
  EXPECT_EQ(slow.judged().remedy.command.front(), "prepare");
  // What is decoded once need not be read again either.
  slow.now.config.data.decoded_memory = 0;
  EXPECT_EQ(slow.judged().remedy.command.front(), "prepare") << "plain WAV is not kept";
  slow.now.decodes = true;
  EXPECT_EQ(slow.setting(), "data.decoded_memory=null");
  slow.now.config.data.decoded_memory.reset();
  // Mels that are no smaller than the files help nobody.
  slow.figures.batch_bytes = 4e6;
  EXPECT_EQ(slow.judged().remedy.command, (std::vector<std::string>{"doctor", "--data", "corpus"}));
}

TEST(DiagnoseRules, OnlyWhatTheStageReadsIsCached) {
  DiagnoseCase slow;
  slow.figures.prepare = 0.080;
  slow.starve(0.080);
  EXPECT_EQ(slow.verdict(), "data-device-bound");
  const auto remedy = [&] { return slow.judged().remedy.command; };
  EXPECT_EQ(remedy().front(), "profile") << "the stage `bytes` reads no mels";
  slow.now.config.training.stage = "decoder";
  EXPECT_EQ(remedy().front(), "profile");
  slow.now.config.training.stage = "gpt";
  EXPECT_EQ(remedy().front(), "profile") << "no DVAE is known that makes the codes";
  slow.now.dvae_file = "xtts/dvae.pth";
  EXPECT_EQ(remedy(), (std::vector<std::string>{"prepare", "corpus", "--cache", "codes", "--dvae",
                                                "xtts/dvae.pth"}));
  slow.now.config.training.stage = "dvae";
  // The index remembers language and vocabulary; the folder would have to be told again.
  slow.now.index = "corpus/tandem.index";
  slow.now.config.data.trim_top_db = 30;
  EXPECT_EQ(remedy(), (std::vector<std::string>{"prepare", "corpus/tandem.index", "--cache", "mels",
                                                "data.mel=xtts_dvae", "data.sample_rate=22050",
                                                "data.trim_top_db=30"}));
  slow.now.config.data.noise_snr_db = 20;
  EXPECT_EQ(remedy().front(), "profile") << "noise is another one each epoch";
  slow.now.config.data.noise_snr_db.reset();
  slow.now.features_cached = true;
  EXPECT_EQ(remedy().front(), "profile") << "they are there already";
  // The GPT hears its clips whatever is cached.
  DiagnoseCase decoding;
  decoding.figures.host = {.wall = 0.400, .on_core = 0.390, .in_line = 0.005};
  decoding.now.config.data.num_workers = 8;
  decoding.now.config.training.stage = "gpt";
  decoding.now.dvae_file = "xtts/dvae.pth";
  decoding.starve(0.050);
  EXPECT_EQ(decoding.verdict(), "decode-bound");
  EXPECT_EQ(decoding.judged().remedy.command.front(), "doctor");
  decoding.now.config.data.decoded_memory = 0;
  EXPECT_EQ(decoding.setting(), "data.decoded_memory=null") << "then it is decoded once";
}

TEST(DiagnoseRules, ADiskThatGivesWhatIsWantedIsNotToBlameForOneReader) {
  DiagnoseCase slow;
  slow.figures.host = {.wall = 0.060, .on_core = 0.020, .in_line = 0.001};
  slow.now.config.data.num_workers = 1;
  slow.starve(0.060);
  EXPECT_EQ(slow.verdict(), "slow-storage");
  slow.figures.storage = {.batch_bytes = 4e6, .rate = 400e6, .rate_of_four = 900e6};
  EXPECT_EQ(slow.verdict(), "too-few-workers");
  EXPECT_EQ(slow.setting(), "data.num_workers=4");
}

TEST(DiagnoseRules, MoreDecodingThanCoresIsDecodeBound) {
  DiagnoseCase slow;
  slow.figures.host = {.wall = 0.400, .on_core = 0.390, .in_line = 0.005};
  slow.now.config.data.num_workers = 8;
  slow.starve(0.050);
  EXPECT_EQ(slow.verdict(), "decode-bound");
  slow.now.config.training.stage = "dvae";
  EXPECT_EQ(slow.judged().remedy.command.front(), "prepare");
  slow.now.config.data.use_native_loading = false;
  EXPECT_EQ(slow.setting(), "data.use_native_loading=true");
}

TEST(DiagnoseRules, OneWorkerAndFreeCoresAreTooFewWorkers) {
  DiagnoseCase slow;
  slow.figures.host = {.wall = 0.060, .on_core = 0.058, .in_line = 0.001};
  slow.now.config.data.num_workers = 1;
  slow.starve(0.060);
  EXPECT_EQ(slow.verdict(), "too-few-workers");
  EXPECT_EQ(slow.setting(), "data.num_workers=4");
  EXPECT_NEAR(slow.judged().expected_gain, 2.0 / 3, 1e-6);
  slow.figures.cores = 2;  // 2.9 cores of work: no number of threads helps
  EXPECT_EQ(slow.verdict(), "decode-bound");
}

TEST(DiagnoseRules, ThreadsInLineForCoresAreTooManyWorkers) {
  DiagnoseCase slow;
  slow.now.config.data.num_workers = 64;
  slow.figures.fed = steady(0.030);
  slow.figures.lateness = 0.008;
  slow.figures.replay_lateness = 0.0001;
  EXPECT_EQ(slow.verdict(), "too-many-workers");
  EXPECT_EQ(slow.setting(), "data.num_workers=1");
  EXPECT_NEAR(slow.judged().expected_gain, 0.33, 0.01);
  slow.figures.core_load = 0.3;  // somebody else's
  EXPECT_NE(slow.verdict(), "too-many-workers");
  // The same when the step starves while the threads stand in each other's way.
  DiagnoseCase crowd;
  crowd.now.config.data.num_workers = 64;
  crowd.figures.host = {.wall = 1.6, .on_core = 0.1, .in_line = 1.4};
  crowd.starve(0.030);
  EXPECT_EQ(crowd.verdict(), "too-many-workers");
  EXPECT_EQ(crowd.setting(), "data.num_workers=8");
}

TEST(DiagnoseRules, StagesThatKeepUpMeanAShortQueue) {
  DiagnoseCase slow;
  slow.now.queue_capacity = 1;
  slow.now.config.data.buffer_size = 1;
  slow.starve(0.026);
  EXPECT_EQ(slow.verdict(), "queue-too-small");
  EXPECT_EQ(slow.setting(), "data.buffer_size=50");
  EXPECT_NEAR(slow.judged().expected_gain, 6.0 / 26, 1e-6);
  slow.figures.queues = {{.name = "moved", .ready = 1}};  // it was never empty: not its fault
  EXPECT_EQ(slow.verdict(), "fed");
  slow.figures.queues = {{.name = "moved", .ready = 0.8}};
  EXPECT_EQ(slow.verdict(), "queue-too-small");
  slow.now.queue_capacity = 50;
  slow.now.config.data.buffer_size = 50;
  EXPECT_EQ(slow.setting(), "data.buffer_size=100");
  slow.now.config.data.enhanced_gpu_prefetch = false;
  EXPECT_EQ(slow.setting(), "data.enhanced_gpu_prefetch=true");
}

TEST(DiagnoseRules, ASlowDataDeviceIsNamedAndTheModelsOwnIsTriedWhereItIsFaster) {
  DiagnoseCase slow;
  slow.second_gpu_holds_the_model();
  slow.figures.prepare = 0.080;
  slow.figures.prepare_on_model = 0.010;
  slow.starve(0.080);
  EXPECT_EQ(slow.verdict(), "data-device-bound");
  EXPECT_EQ(slow.judged().remedy.settings,
            (std::vector<std::string>{"data.data_gpu=null", "data.model_gpu=null",
                                      "training.visible_gpus=1"}));
  EXPECT_NEAR(slow.judged().expected_gain, 1 - 0.030 / 0.080, 1e-6);
  slow.figures.prepare_on_model = 0.080;
  slow.now.config.training.stage = "dvae";
  EXPECT_EQ(slow.judged().remedy.command.front(), "prepare");
  // One device that does both in turn, and another that does nothing.
  DiagnoseCase turns;
  turns.now.takes_turns = true;
  turns.now.visible_gpus = 2;
  turns.figures.prepare = 0.015;
  turns.starve(0.035);
  EXPECT_EQ(turns.verdict(), "data-device-bound");
  EXPECT_EQ(turns.setting(), "data.data_gpu=0");
  // At once, where the device does both side by side, and is slowed by it.
  turns.now.takes_turns = false;
  turns.figures.fed = steady(0.030);
  turns.figures.wait = 0;
  EXPECT_EQ(turns.verdict(), "data-device-bound");
  EXPECT_EQ(turns.setting(), "data.data_gpu=0");
  turns.now.strategy = StrategyKind::mirrored;  // nobody is idle
  EXPECT_NE(turns.setting(), "data.data_gpu=0");
}

TEST(DiagnoseRules, CopiesThatTakeLongerThanAStepAreTransferBound) {
  DiagnoseCase slow;
  slow.second_gpu_holds_the_model();
  slow.figures.move = 0.060;
  slow.figures.batch_bytes = 6e6;
  slow.starve(0.060);
  EXPECT_EQ(slow.verdict(), "transfer-bound");
  EXPECT_EQ(slow.setting(), "data.data_gpu=null");
  slow.now.config.data.optimize_cpu_gpu_overlap = false;
  EXPECT_EQ(slow.setting(), "data.optimize_cpu_gpu_overlap=true");
  slow.now.config.data.prefetch_to_gpu = false;
  EXPECT_EQ(slow.setting(), "data.prefetch_to_gpu=true");
  slow.now.config.data.pin_memory = false;
  EXPECT_EQ(slow.setting(), "data.pin_memory=true");
  // Half a step, but in turn with it.
  DiagnoseCase turns;
  turns.second_gpu_holds_the_model();
  turns.figures.move = 0.010;
  turns.starve(0.030);
  EXPECT_EQ(turns.verdict(), "queue-too-small");
  turns.now.config.data.optimize_cpu_gpu_overlap = false;
  EXPECT_EQ(turns.verdict(), "transfer-bound");
  EXPECT_NEAR(turns.judged().expected_gain, 1.0 / 3, 1e-6);
}

TEST(DiagnoseRules, AHostThatWaitsInTheStepIsAHostSync) {
  DiagnoseCase slow;
  slow.figures.launch = {.wall = 0.020, .on_core = 0.008};
  slow.figures.syncs = 3;
  slow.figures.sync_names = "aten::_local_scalar_dense";
  EXPECT_EQ(slow.verdict(), "host-sync");
  EXPECT_EQ(slow.judged().remedy.command.front(), "profile");
  EXPECT_NEAR(slow.judged().expected_gain, 0.4 * 0.020 / 0.0202, 1e-3);
  slow.now.config.training.enable_eager_debug = true;
  EXPECT_EQ(slow.setting(), "training.enable_eager_debug=false");
  // On the CPU a step is over when it returns: there is nothing to overlap.
  slow.now.config.training.enable_eager_debug = false;
  slow.figures.queues_work = false;
  EXPECT_EQ(slow.verdict(), "fed");
}

TEST(DiagnoseRules, GraphsCapturedAgainAndAgain) {
  DiagnoseCase slow;
  slow.figures.fed = steady(0.080);
  slow.figures.captures = 0.8;
  slow.figures.capture_cost = 0.060;
  EXPECT_EQ(slow.verdict(), "recapturing");
  EXPECT_EQ(slow.setting(), "data.buckets=2");
  EXPECT_NEAR(slow.judged().expected_gain, 0.6, 1e-6);
  slow.now.config.data.batch_seconds = 100;
  EXPECT_EQ(slow.setting(), "data.batch_seconds=null");
  slow.now.config.data.batch_seconds.reset();
  slow.now.config.data.buckets = 1;
  EXPECT_EQ(slow.setting(), "training.enable_graph_mode=false");
  slow.figures.captures = 0.02;  // a new shape now and then
  slow.figures.fed = steady(0.0202);
  EXPECT_EQ(slow.verdict(), "fed");
}

TEST(DiagnoseRules, CapturesThatEndOrCostLittleAreNoBottleneck) {
  DiagnoseCase slow;
  slow.figures.captures = 0.4;
  slow.figures.capture_cost = 0.060;
  slow.figures.fed_is_settled = true;
  EXPECT_EQ(slow.verdict(), "recapturing");
  EXPECT_NEAR(slow.judged().expected_gain, 0.024 / (slow.figures.fed.mean + 0.024), 1e-6);
  slow.figures.captures_end = true;  // every shape comes for the first time once
  EXPECT_EQ(slow.verdict(), "fed");
  slow.figures.captures_end = false;
  slow.figures.capture_cost = 0.001;
  EXPECT_EQ(slow.verdict(), "fed");
}

TEST(DiagnoseRules, AThreadThatLaunchesAllTheTimeIsLaunchBound) {
  DiagnoseCase slow;
  slow.figures.devices[0].real = true;
  slow.figures.operations = 10;
  slow.figures.queues_work = true;
  slow.now.config.training.enable_graph_mode = false;
  const double step = slow.figures.replay.median;
  slow.figures.launch = {.wall = step, .on_core = 0.95 * step};
  EXPECT_EQ(slow.verdict(), "launch-bound");
  EXPECT_EQ(slow.setting(), "training.enable_graph_mode=true");
  // Ahead of its GPU it spins or sleeps when the queue of launches is full: nobody waits in the
  // step.
  slow.figures.devices[0].utilisation = steady(0.99);
  EXPECT_EQ(slow.verdict(), "fed");
  slow.figures.devices[0].utilisation = steady(0.95);
  slow.figures.launch = {.wall = step, .on_core = 0.4 * step};
  EXPECT_EQ(slow.verdict(), "fed");
}

TEST(DiagnoseRules, ManySmallOperationsAreLaunchBound) {
  DiagnoseCase slow;
  slow.figures.operations = 8000;
  EXPECT_EQ(slow.verdict(), "launch-bound");
  EXPECT_EQ(slow.setting(), "data.batch_size=32");
  slow.figures.devices[0].real = true;
  slow.now.config.training.stage = "gpt";
  slow.now.config.training.precision = "bf16";
  slow.now.config.training.enable_kernel_fusion = false;
  EXPECT_EQ(slow.setting(), "training.enable_kernel_fusion=true");
  slow.now.config.training.precision = "fp32";  // whose step has no fused form
  EXPECT_EQ(slow.setting(), "data.batch_size=32");
  slow.now.config.training.enable_graph_mode = false;
  EXPECT_EQ(slow.setting(), "training.enable_graph_mode=true");
  slow.figures.operations = 4000;  // 8 of 20 ms
  EXPECT_EQ(slow.verdict(), "fed");
}

TEST(DiagnoseRules, AStepThatCouldComputeFasterIsComputeBound) {
  DiagnoseCase slow;
  slow.now.visible_gpus = 4;
  EXPECT_EQ(slow.verdict(), "compute-bound");
  EXPECT_EQ(slow.setting(), "training.multi_gpu=true");
  EXPECT_DOUBLE_EQ(slow.judged().expected_gain, 0.75);
  slow.figures.low_precision_speed = 5;
  EXPECT_EQ(slow.setting(), "training.precision=bf16");
  slow.now.config.training.recompute = true;
  EXPECT_EQ(slow.setting(), "training.recompute=false");
  slow.figures.devices[0].utilisation = steady(0.4);  // it does not compute
  EXPECT_EQ(slow.verdict(), "fed");
}

// XTTS v2 on an H200: bfloat16, captured, fused, 99 % busy. Products in float32 are slower there,
// and nobody uses them.
TEST(DiagnoseRules, HalfPrecisionIsNotRecommendedToThoseWhoHaveIt) {
  DiagnoseCase slow;
  slow.figures.devices[0].real = true;
  slow.figures.devices[0].utilisation = steady(0.99);
  slow.figures.low_precision_speed = 2;
  slow.now.config.training.precision = "tf32";
  EXPECT_EQ(slow.setting(), "training.precision=bf16");
  for (const char* half : {"bf16", "fp16"}) {
    slow.now.config.training.precision = half;
    slow.now.visible_gpus = 1;
    EXPECT_EQ(slow.verdict(), "fed") << half;
    slow.now.visible_gpus = 2;
    EXPECT_EQ(slow.verdict(), "compute-bound") << half;
    EXPECT_EQ(slow.setting(), "training.multi_gpu=true") << half;
  }
}

// XTTS v2, float32, two clips, launched one by one: 23 of 59 ms by the operations' count.
TEST(DiagnoseRules, AnIdleGpuThatWaitsForNothingIsNotFed) {
  DiagnoseCase idle;
  idle.figures.replay = steady(0.0587);
  idle.figures.fed = steady(0.0496);
  idle.figures.wait = 6.4e-5;
  idle.figures.operations = 2952;
  idle.figures.launch_cost = 7.95e-6;
  idle.figures.launch = {.wall = 0.0587, .on_core = 0.030};
  idle.figures.devices[0].real = true;
  idle.figures.devices[0].utilisation = steady(0.74);
  idle.now.config.training.enable_graph_mode = false;
  EXPECT_EQ(idle.verdict(), "launch-bound");
  EXPECT_EQ(idle.setting(), "training.enable_graph_mode=true");
  EXPECT_EQ(idle.judged().evidence.front().name, "utilisation");
  EXPECT_GT(idle.judged().expected_gain, 0.15);
  // Captured, it is still idle; then only more clips a launch help.
  idle.now.config.training.enable_graph_mode = true;
  EXPECT_EQ(idle.verdict(), "launch-bound");
  EXPECT_EQ(idle.setting(), "data.batch_size=32");
  idle.figures.devices[0].utilisation = steady(0.85);
  EXPECT_EQ(idle.verdict(), "fed");
  // A device that waits for data is somebody else's case.
  idle.figures.devices[0].utilisation = steady(0.5);
  idle.starve(0.120);
  EXPECT_NE(idle.verdict(), "launch-bound");
}

TEST(DiagnoseRules, AClockSetByHandIsThrottledWhateverTheReasonsSay) {
  DiagnoseCase slow;
  DeviceFigures& device = slow.figures.devices[0];
  device.real = true;
  device.utilisation = steady(0.996);
  device.clock = 0.2;
  device.braked = device.power_capped = 0;
  device.clock_mhz = 400;
  device.highest_mhz = 1980;
  device.clock_reasons = {"clocks set by the user"};
  slow.figures.low_precision_speed = 16;  // would be the next to be named
  EXPECT_EQ(slow.verdict(), "throttled");
  EXPECT_EQ(slow.judged().evidence.front().words,
            "/GPU:0 runs at 400 of 1980 MHz (clocks set by the user)");
  EXPECT_NEAR(slow.judged().expected_gain, 0.8, 1e-6);
  EXPECT_TRUE(slow.judged().remedy.empty()) << "nothing of ours that could be tried";
  const auto json = to_json(slow.judged(), "", slow.figures, slow.now);
  EXPECT_EQ(json["command"], "nvidia-smi -rgc");
  EXPECT_EQ(json["figures"]["devices"]["/GPU:0"]["clock_mhz"], 400);
  EXPECT_EQ(json["figures"]["devices"]["/GPU:0"]["highest_mhz"], 1980);
  EXPECT_EQ(json["figures"]["devices"]["/GPU:0"]["clock_reasons"][0], "clocks set by the user");
  EXPECT_NE(describe(slow.judged(), "").find("Try: nvidia-smi -rgc\n"), std::string::npos);
  device.utilisation = steady(0.3);  // an idle card sleeps
  EXPECT_NE(slow.verdict(), "throttled");
  device.utilisation = steady(0.996);
  device.clock = 0.65;
  EXPECT_NE(slow.verdict(), "throttled");
}

TEST(DiagnoseRules, OneReplicaThatHoldsUpTheOthers) {
  DiagnoseCase slow;
  slow.now.strategy = StrategyKind::mirrored;
  slow.now.visible_gpus = 3;
  slow.figures.devices.resize(3, slow.figures.devices.front());
  for (int i = 0; i < 3; ++i) {
    slow.figures.devices[static_cast<size_t>(i)].name = "/GPU:" + std::to_string(i);
    slow.figures.devices[static_cast<size_t>(i)].index = i;
  }
  EXPECT_EQ(slow.verdict(), "fed");
  slow.figures.devices[1].own_step = 0.060;
  EXPECT_EQ(slow.verdict(), "slow-device");
  EXPECT_EQ(slow.setting(), "training.visible_gpus=0,2");
  EXPECT_NEAR(slow.judged().expected_gain, 0.5, 1e-6);
  // A third slower: without it the others would have half as much again to do.
  slow.figures.devices[1].own_step = 0.027;
  EXPECT_EQ(slow.verdict(), "slow-device");
  EXPECT_EQ(slow.judged().remedy.command.front(), "doctor");
}

TEST(DiagnoseRules, AClockThatIsHeldDownIsThrottled) {
  DiagnoseCase slow;
  slow.figures.devices[0].clock = 0.6;
  slow.figures.devices[0].braked = 0.5;
  slow.figures.devices[0].power_capped = 0;
  EXPECT_EQ(slow.verdict(), "throttled");
  EXPECT_NEAR(slow.judged().expected_gain, 0.4, 1e-6);
  EXPECT_EQ(slow.judged().remedy.command.front(), "monitor");
  slow.figures.devices.push_back({.name = "/GPU:1", .index = 1, .clock = 1, .braked = 0});
  EXPECT_EQ(slow.setting(), "training.visible_gpus=1");
  // A card at its power limit that keeps most of its clock is as it should be.
  slow.figures.devices[0] = {
      .name = "/GPU:0", .holds_model = true, .clock = 0.85, .braked = 0, .power_capped = 1};
  EXPECT_NE(slow.verdict(), "throttled");
  slow.figures.devices[0].clock = 0.5;
  EXPECT_EQ(slow.verdict(), "throttled");
}

TEST(DiagnoseRules, ADeviceThatGetsSlowerAndSlowerIsThrottledWhereNoClockIsKnown) {
  DiagnoseCase slow;
  slow.figures.drift = 1.4;
  EXPECT_EQ(slow.verdict(), "throttled");
  slow.figures.devices[0].utilisation = steady(0.3);
  EXPECT_EQ(slow.verdict(), "fed");
}

TEST(DiagnoseRules, AFullDeviceIsMemoryPressure) {
  DiagnoseCase full;
  full.figures.devices[0].peak = 950;
  EXPECT_EQ(full.verdict(), "memory-pressure");
  EXPECT_EQ(
      full.judged().remedy.settings,
      (std::vector<std::string>{"data.batch_size=8", "training.gradient_accumulation_steps=2"}));
  full.now.config.data.batch_size = 1;  // one clip cannot be halved
  EXPECT_EQ(full.judged().remedy.command.front(), "profile");
  full.now.config.data.batch_size = 16;
  full.now.config.training.stage = "gpt";
  EXPECT_EQ(full.setting(), "training.recompute=true");
  full.figures.batch_bytes = 10;  // 50 batches of 10 bytes are half of it
  full.now.config.data.buffer_size = 50;
  EXPECT_EQ(full.setting(), "data.buffer_size=12");
  full.figures.devices[0].peak = 500;
  full.figures.parts = 2;
  EXPECT_EQ(full.verdict(), "memory-pressure");
}

TEST(DiagnoseRules, OfSeveralCausesTheOneThatCostsMostIsNamed) {
  DiagnoseCase both;
  both.figures.operations = 8000;  // 16 of 20 ms
  both.figures.host = {.wall = 0.400, .on_core = 0.020, .in_line = 0.001};
  both.starve(0.100);
  EXPECT_EQ(both.verdict(), "slow-storage");
  both.starve(0.022);
  EXPECT_EQ(both.verdict(), "launch-bound");
}

TEST(DiagnoseRules, SimulatedDevicesNeedCoresOfTheirOwn) {
  DiagnoseCase one;
  one.now.visible_gpus = 4;
  one.figures.cores = 8;
  one.figures.core_load = 0.25;  // two of eight
  EXPECT_EQ(one.verdict(), "compute-bound");
  EXPECT_EQ(one.judged().remedy.settings, (std::vector<std::string>{"training.multi_gpu=true"}));
  one.figures.others_load = 0.25;
  EXPECT_EQ(one.judged().remedy.settings.size(), 2U) << "three of the four have cores";
  one.figures.core_load = 0.7;
  EXPECT_EQ(one.verdict(), "fed");
  one.figures.devices[0].real = true;
  EXPECT_EQ(one.verdict(), "compute-bound");
}

TEST(DiagnoseRules, WhereHostAndDeviceAreOneEveryWaitIsLost) {
  DiagnoseCase waits;
  waits.figures.replay = steady(0.060);  // a longer batch than most
  waits.figures.fed = steady(0.040);
  waits.figures.wait = 0.020;
  waits.figures.host = {.wall = 0.400, .on_core = 0.020, .in_line = 0.001};
  EXPECT_EQ(waits.verdict(), "fed");
  waits.figures.queues_work = false;
  EXPECT_EQ(waits.verdict(), "slow-storage");
}

TEST(DiagnoseRules, AHostThatIsAheadOfItsDeviceLosesNothing) {
  DiagnoseCase ahead;
  ahead.figures.wait = 0.019;  // for a free slot, while the device computes
  EXPECT_EQ(ahead.verdict(), "fed");
}

TEST(DiagnoseRules, JitterOfABusyMachineIsNotBlamedOnTheQueue) {
  DiagnoseCase busy;
  busy.starve(0.026);
  EXPECT_EQ(busy.verdict(), "queue-too-small");
  busy.figures.others_load = 0.9;  // with no effect: they are of lower priority
  EXPECT_EQ(busy.verdict(), "queue-too-small");
  busy.figures.lateness = 0.005;
  EXPECT_EQ(busy.verdict(), "fed");
  EXPECT_EQ(busy.judged().evidence.back().name, "others_load");
  EXPECT_EQ(busy.judged().sentence,
            "The step has its data in time, but other programs keep it from the cores.");
  // Half of the cores are enough where this program has the other half.
  busy.figures.others_load = 0.5;
  busy.figures.core_load = 0.3;
  EXPECT_EQ(busy.verdict(), "queue-too-small");
  busy.figures.core_load = 0.5;
  EXPECT_EQ(busy.verdict(), "fed");
  busy.figures.lateness = 0;
  EXPECT_EQ(busy.judged().sentence, sentence_of(Bottleneck::queue_too_small));
}

TEST(DiagnoseRules, EveryNameIsFoundAgainAndEverySettingExists) {
  std::set<std::string> names;
  for (const Bottleneck bottleneck : all_bottlenecks()) {
    EXPECT_EQ(bottleneck_named(to_string(bottleneck)), bottleneck);
    names.insert(to_string(bottleneck));
  }
  EXPECT_EQ(names.size(), 15U);
  EXPECT_FALSE(bottleneck_named("slow"));
  for (const char* key : {"data.num_workers",
                          "data.use_native_loading",
                          "data.buffer_size",
                          "data.prefetch_factor",
                          "data.enhanced_gpu_prefetch",
                          "data.data_gpu",
                          "data.model_gpu",
                          "data.pin_memory",
                          "data.prefetch_to_gpu",
                          "data.optimize_cpu_gpu_overlap",
                          "data.buckets",
                          "data.batch_seconds",
                          "data.batch_size",
                          "training.visible_gpus",
                          "training.recompute",
                          "training.enable_graph_mode",
                          "training.enable_eager_debug",
                          "training.precision",
                          "training.enable_kernel_fusion",
                          "training.multi_gpu",
                          "training.gradient_accumulation_steps"})
    EXPECT_NE(find_by_key(key), nullptr) << key;
}

TEST(DiagnoseRules, TheTextHasTheVerdictLineAndTheDocumentItsKeys) {
  DiagnoseCase slow;
  slow.figures.host = {.wall = 0.400, .on_core = 0.020, .in_line = 0.001};
  slow.starve(0.100);
  const std::string text = describe(slow.judged(), "tandem train data.num_workers=25");
  EXPECT_TRUE(text.starts_with("Verdict: slow-storage\n")) << text;
  EXPECT_NE(text.find("80.0 % of a step waits for data"), std::string::npos) << text;
  EXPECT_NE(text.find("Try: tandem train data.num_workers=25\n"), std::string::npos) << text;
  EXPECT_NE(describe(slow.figures, slow.now).find("no oscillation"), std::string::npos);
  const auto json = to_json(slow.judged(), "tandem x", slow.figures, slow.now);
  EXPECT_EQ(json["verdict"], "slow-storage");
  EXPECT_EQ(json["command"], "tandem x");
  EXPECT_GT(json["expected_gain"].get<double>(), 0.5);
  EXPECT_EQ(json["evidence"][0]["name"], "wait_share");
  EXPECT_EQ(json["named_figures"].size(), 15U);
  EXPECT_EQ(json["figures"]["launch"]["on_core"], slow.figures.launch.on_core);
  const auto well = to_json(DiagnoseCase().judged(), "", slow.figures, slow.now);
  EXPECT_TRUE(well["command"].is_null());
}

}  // namespace tandem
