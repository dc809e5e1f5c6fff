// Bottlenecks planted on simulated devices: each is named from what is measured, and its remedy,
// applied, makes the named figure better. Times are sleeps and computed time with wide margins;
// since a machine may be busy with anything else, a case may be tried again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "observe/planted_subject.h"
#include "tandem/devices.h"
#include "tandem/error.h"
#include "util/clock.h"
#include "util/threads.h"

namespace tandem::tests {
namespace {

void simulate(int gpus, const char* slowness = "1", const char* megabytes = "8192") {
  setenv("TANDEM_SIMULATE_SLOWNESS", slowness, 1);
  setenv("TANDEM_SIMULATE_MEMORY", megabytes, 1);
  configure_devices({.simulate_gpus = gpus});
}

Config planted_settings() {
  Config config;
  config.data.batch_size = 8;
  config.data.num_workers = 2;
  config.data.buffer_size = 8;
  return config;
}

// Where others use more of the machine than this, times say nothing.
constexpr double spare_cores = 0.25;

// The GPUs a remedy leaves, and those the rest of the settings name.
using ChooseGpus = std::function<std::vector<int>(const Config&)>;

PlantedOutcome diagnose_planted(const Planted& planted, const Config& config,
                                const ChooseGpus& gpus, int64_t batches = 50) {
  MeasureOptions options{.batches = batches, .most_seconds = 4, .sample_every = 0.03};
  if (planted.hot_gpu >= 0)
    options.read_clocks = [hot = planted.hot_gpu] {
      return std::vector<ClockReading>{
          {.index = 0, .clock = hot == 0 ? 0.4 : 1, .braked = hot == 0},
          {.index = 1, .clock = hot == 1 ? 0.4 : 1, .braked = hot == 1}};
    };
  PlantedOutcome outcome;
  {
    PlantedSubject subject(planted, config, gpus(config));
    const Figures figures = measure(subject, options);
    outcome.diagnosis = judge(figures, subject.circumstances());
    outcome.others_load = figures.others_load;
    outcome.before = named_figure(outcome.diagnosis.verdict, figures, subject.circumstances());
  }
  outcome.after = outcome.before;
  if (outcome.diagnosis.remedy.settings.empty()) return outcome;
  const Config changed = with_settings(config, outcome.diagnosis.remedy.settings);
  PlantedSubject subject(planted, changed, gpus(changed));
  const Figures figures = measure(subject, options);
  outcome.after = named_figure(outcome.diagnosis.verdict, figures, subject.circumstances());
  outcome.others_load = std::max(outcome.others_load, figures.others_load);
  return outcome;
}

ChooseGpus always(std::vector<int> gpus) {
  return [gpus](const Config&) { return gpus; };
}

void expect_mended(Bottleneck verdict, const Planted& planted, const Config& config,
                   const ChooseGpus& gpus, int64_t batches = 50) {
  constexpr int tries = 3;
  for (int attempt = 1; attempt <= tries; ++attempt) {
    PlantedOutcome outcome;
    try {
      outcome = diagnose_planted(planted, config, gpus, batches);
    } catch (const Error& error) {  // a remedy for something else may ask too much
      if (attempt == tries) ADD_FAILURE() << error.what();
      continue;
    }
    const bool named = outcome.diagnosis.verdict == verdict;
    if (named && outcome.after < outcome.before) return;
    if (attempt < tries) continue;
    if (outcome.others_load > spare_cores) GTEST_SKIP() << "other programs use the cores";
    EXPECT_EQ(to_string(outcome.diagnosis.verdict), to_string(verdict));
    EXPECT_LT(outcome.after, outcome.before);
    for (const Evidence& one : outcome.diagnosis.evidence) ADD_FAILURE() << one.words;
  }
}

}  // namespace

TEST(DiagnosePlanted, SlowDisk) {
  simulate(1);
  expect_mended(Bottleneck::slow_storage, {.reading = 0.010}, planted_settings(), always({0}));
}

// The first batch is the longest: by it alone no step would be longer fed than replayed.
TEST(DiagnosePlanted, SlowDiskBesideBatchesOfUnlikeLengths) {
  simulate(1);
  expect_mended(Bottleneck::slow_storage, {.reading = 0.012, .long_every = 8, .long_step = 0.060},
                planted_settings(), always({0}));
}

TEST(DiagnosePlanted, SlowDecoder) {
  simulate(1);
  Config config = planted_settings();
  const auto cores = static_cast<double>(allowed_cpus().size());
  config.data.num_workers = static_cast<int64_t>(cores);
  config.data.use_native_loading = false;
  // Twice what all cores can do in the time of a step.
  expect_mended(Bottleneck::decode_bound, {.decoding = 2 * cores * 0.005 / 4}, config, always({0}),
                30);
}

TEST(DiagnosePlanted, OneWorker) {
  simulate(1);
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "one core cannot serve a second worker";
  Config config = planted_settings();
  config.data.num_workers = 1;
  config.data.use_native_loading = false;
  expect_mended(Bottleneck::too_few_workers, {.decoding = 0.003, .step = 0.008}, config,
                always({0}));
}

TEST(DiagnosePlanted, AQueueOfOneAndJitter) {
  simulate(1);
  Config config = planted_settings();
  config.data.num_workers = 1;
  config.data.prefetch_factor = 1;
  config.data.buffer_size = 1;
  config.data.enhanced_gpu_prefetch = false;
  expect_mended(Bottleneck::queue_too_small,
                {.tasks = 1, .stall_every = 20, .stall = 0.130, .step = 0.010}, config, always({0}),
                80);
}

TEST(DiagnosePlanted, SlowDataDevice) {
  simulate(2, "10,1");
  Config config = planted_settings();
  config.data.data_gpu = "0";
  config.data.model_gpu = "1";
  expect_mended(Bottleneck::data_device_bound, {.preparing = 0.002, .prepares_at_home = true},
                config, [](const Config& now) {
                  return now.data.data_gpu ? std::vector<int>{0, 1} : std::vector<int>{1};
                });
}

TEST(DiagnosePlanted, SlowTransfer) {
  simulate(2, "1,8");
  Config config = planted_settings();
  config.data.data_gpu = "0";
  config.data.model_gpu = "1";
  config.data.optimize_cpu_gpu_overlap = false;
  constexpr int64_t width = 1 << 18;  // 8 MiB a batch
  const at::Tensor from = at::zeros({8, width}), to = at::zeros({8, width});
  const auto start = Clock::now();
  for (int i = 0; i < 5; ++i) at::Tensor(to).copy_(from);
  const double copy = seconds_since(start) / 5;
  // Eight times as slow as this host copies, and a little longer than a step.
  expect_mended(Bottleneck::transfer_bound, {.width = width, .step = copy / 1.5}, config,
                always({0, 1}), 40);
}

TEST(DiagnosePlanted, HostSyncInTheStep) {
  simulate(1);
  Config config = planted_settings();
  config.training.enable_eager_debug = true;
  expect_mended(Bottleneck::host_sync, {.launching = 0.006, .step = 0.010}, config, always({0}));
}

TEST(DiagnosePlanted, ShapesThatAreCapturedEachStep) {
  simulate(1);
  Config config = planted_settings();
  config.data.buckets = 64;
  expect_mended(Bottleneck::recapturing, {.new_shapes = true, .capturing = 0.015}, config,
                always({0}));
}

TEST(DiagnosePlanted, SmallOperations) {
  simulate(1);
  expect_mended(Bottleneck::launch_bound, {.step = 0, .small_operations = 4000}, planted_settings(),
                always({0}), 30);
}

// The step sleeps while its backward pass is launched on another thread.
TEST(DiagnosePlanted, ThreadsOfTheBackwardPassLaunchToo) {
  simulate(1);
  PlantedSubject subject({.launching = 0.001, .backward = 0.004, .step = 0.002}, planted_settings(),
                         {0});
  const Figures figures = measure(subject, {.batches = 20, .most_seconds = 2});
  EXPECT_GE(figures.launch.on_core, 0.0045);
  EXPECT_LE(figures.launch.on_core, 0.0075);
}

TEST(DiagnosePlanted, ClipsOfABatchAreTheMeanOfWhatWasSeen) {
  simulate(1);
  PlantedSubject subject({.first_rows = 2, .step = 0.002}, planted_settings(), {0});
  EXPECT_DOUBLE_EQ(measure(subject, {.batches = 20, .most_seconds = 2}).rows, 8);
}

TEST(DiagnosePlanted, AClockHeldByHandIsReadInMegahertz) {
  simulate(1);
  PlantedSubject subject({.step = 0.002}, planted_settings(), {0});
  MeasureOptions options{.batches = 40, .most_seconds = 2, .sample_every = 0.01};
  options.read_clocks = [] {
    return std::vector<ClockReading>{{.index = 0,
                                      .clock = 0.2,
                                      .mhz = 400,
                                      .highest_mhz = 1980,
                                      .reasons = {"clocks set by the user"}}};
  };
  const DeviceFigures device = measure(subject, options).devices.at(0);
  EXPECT_DOUBLE_EQ(device.clock_mhz, 400);
  EXPECT_DOUBLE_EQ(device.highest_mhz, 1980);
  EXPECT_EQ(device.clock_reasons, (std::vector<std::string>{"clocks set by the user"}));
}

TEST(DiagnosePlanted, LargeProductsOnOneOfTwoDevices) {
  simulate(2);
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "two simulated devices need two cores";
  expect_mended(Bottleneck::compute_bound, {.step = 0, .computing_a_row = 0.003},
                planted_settings(), always({0, 1}), 30);
}

TEST(DiagnosePlanted, OneSlowReplica) {
  simulate(3, "1,1,5");
  Config config = planted_settings();
  config.training.multi_gpu = true;
  expect_mended(
      Bottleneck::slow_device, {.step = 0.001, .step_a_row = 0.001}, config,
      [](const Config& now) {
        return now.training.visible_gpus ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2};
      },
      30);
}

TEST(DiagnosePlanted, AThrottledClock) {
  simulate(2);
  expect_mended(
      Bottleneck::throttled, {.step = 0.010, .hot_gpu = 0}, planted_settings(),
      [](const Config& now) {
        return now.training.visible_gpus ? std::vector<int>{1} : std::vector<int>{0};
      },
      30);
}

TEST(DiagnosePlanted, MemoryNearlyFull) {
  simulate(4, "1", "64");
  Config config = planted_settings();
  config.data.data_gpu = "0";
  config.data.model_gpu = "1";
  config.data.buffer_size = 40;
  // 42 batches of 1 MiB beside 18 MiB. A ledger keeps what it has seen: the remedy is tried on two
  // other devices.
  expect_mended(
      Bottleneck::memory_pressure, {.width = 1 << 15, .step = 0.010, .held = 18 << 20}, config,
      [](const Config& now) {
        return now.data.buffer_size == 40 ? std::vector<int>{0, 1} : std::vector<int>{2, 3};
      },
      30);
}

TEST(DiagnosePlanted, AllWell) {
  simulate(1);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const PlantedOutcome outcome =
        diagnose_planted({.decoding = 0.0005, .preparing = 0.0001, .step = 0.020},
                         planted_settings(), always({0}), 30);
    if (outcome.diagnosis.verdict == Bottleneck::fed) return;
    if (outcome.others_load > spare_cores) GTEST_SKIP() << "other programs use the cores";
    EXPECT_LT(attempt, 2) << to_string(outcome.diagnosis.verdict);
  }
}

}  // namespace tandem::tests
