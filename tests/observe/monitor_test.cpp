#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "observe/made_run.h"
#include "observe/monitor_reading.h"
#include "observe/monitor_terminal.h"
#include "support/captured.h"

namespace tandem::tests {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string all_lines(const MonitorReading& reading, size_t columns = 200) {
  std::string text;
  for (const MonitorLine& line : screen_lines(reading, {}, columns)) text += line.text + "\n";
  return text;
}

void add_line(const TestFolder& folder, const std::string& name, const std::string& line) {
  std::ofstream(folder / name, std::ios::app) << line << "\n";
}

}  // namespace

TEST(GpuMonitor, ReadsEveryFigureTheDriverHas) {
  setenv("TANDEM_FAKE_GPUS", "2", 1);
  setenv("TANDEM_FAKE_THROTTLE", "68", 1);  // 0x44
  const GpuMonitor monitor(TANDEM_FAKE_NVML);
  const auto gpus = monitor.read();
  ASSERT_EQ(gpus.size(), 2U);
  const GpuState& gpu = gpus[1];
  EXPECT_EQ(gpu.name, "GPU 1");
  EXPECT_EQ(gpu.hardware, "NVIDIA Pretend 1");
  EXPECT_EQ(gpu.uuid, "GPU-00000001-pretend");
  EXPECT_DOUBLE_EQ(gpu.utilisation.value(), 0.11);
  EXPECT_DOUBLE_EQ(gpu.bus_utilisation.value(), 0.05);
  EXPECT_EQ(gpu.used, 1ULL << 30);
  EXPECT_EQ(gpu.total, 24ULL << 30);
  EXPECT_DOUBLE_EQ(gpu.power.value(), 123.4);
  EXPECT_DOUBLE_EQ(gpu.power_limit.value(), 700);
  EXPECT_EQ(gpu.temperature, 41);
  EXPECT_EQ(gpu.sm_clock, 1215);
  EXPECT_EQ(gpu.sm_clock_highest, 1980);
  EXPECT_EQ(gpu.memory_clock, 3201);
  EXPECT_EQ(gpu.throttled, (std::vector<std::string>{"power cap", "heat (hardware)"}));
  EXPECT_DOUBLE_EQ(gpu.received.value(), 12e6);
  EXPECT_DOUBLE_EQ(gpu.sent.value(), 250e3);
}

TEST(GpuMonitor, WithoutADriverHasNoGpus) {
  EXPECT_TRUE(GpuMonitor("libno-such-library.so").read().empty());
  setenv("TANDEM_FAKE_GPUS", "2", 1);
  setenv("TANDEM_FAKE_NVML_BROKEN", "1", 1);
  EXPECT_TRUE(GpuMonitor(TANDEM_FAKE_NVML).read().empty());
}

TEST(GpuMonitor, DoesNotCallAnIdleGpuThrottled) {
  EXPECT_TRUE(throttle_reasons(0x1).empty());
  EXPECT_EQ(throttle_reasons(0x1FF).size(), 8U);
}

TEST(HostMonitor, TellsTheShareOfTheCoresBetweenTwoReadings) {
  const TestFolder proc;
  proc.write("stat", "cpu  100 0 50 800 50 0 0 0 90 0\ncpu0 1 2\ncpu1 3 4\nintr 5 6\n");
  proc.write("meminfo", "MemTotal:  1000 kB\nMemFree: 100 kB\nMemAvailable:  400 kB\n");
  proc.write("loadavg", "1.50 1.0 0.5 1/200 999\n");
  HostMonitor monitor(proc.path());
  const HostState first = monitor.read();
  EXPECT_FALSE(first.cpu) << "one reading tells no share";
  EXPECT_EQ(first.cores, 2);
  EXPECT_EQ(first.total, 1000U * 1024);
  EXPECT_EQ(first.used, 600U * 1024);
  EXPECT_DOUBLE_EQ(first.load.value(), 1.5);
  proc.write("stat", "cpu  150 0 75 850 75 0 0 0 90 0\ncpu0 1 2\ncpu1 3 4\n");
  EXPECT_DOUBLE_EQ(monitor.read().cpu.value(), 0.5);  // 75 of 150 ticks
}

TEST(HostMonitor, WithoutTheKernelsFilesKnowsNothing) {
  const TestFolder nothing;
  const HostState host = HostMonitor(nothing.path()).read();
  EXPECT_EQ(host.cores, 0);
  EXPECT_EQ(host.total, 0U);
  EXPECT_FALSE(host.load);
}

TEST(RunMonitor, ReadsATrainingFromItsFolder) {
  const TestFolder folder;
  make_whole_run(folder);
  RunMonitor monitor(folder.path());
  const RunState run = monitor.read();
  EXPECT_EQ(run.work, "train");
  EXPECT_EQ(run.standing.kind, RunStanding::finished);
  EXPECT_EQ(run.step, 100);
  EXPECT_EQ(run.total_steps, 100);
  EXPECT_EQ(run.losses.size(), 100U);
  EXPECT_DOUBLE_EQ(run.validation->value("loss").value(), 3);
  ASSERT_EQ(run.devices.size(), 1U);
  EXPECT_EQ(run.devices[0].hardware, "NVIDIA Pretend");
  EXPECT_DOUBLE_EQ(run.devices[0].now.utilisation, 0.8);
  EXPECT_EQ(run.devices[0].history.size(), 20U);
  ASSERT_EQ(run.queues.size(), 1U);
  EXPECT_EQ(run.queues[0], (std::pair<std::string, double>("moved", 0.75)));
  EXPECT_EQ(run.happened, "the micro-batch was halved");
  EXPECT_FALSE(run.seconds_left) << "nothing is left";
}

TEST(RunMonitor, FollowsWhatIsAdded) {
  const TestFolder folder;
  RunEvents events(folder / "events.jsonl");
  events.add(beginning_event(0, 100));
  RunMonitor monitor(folder.path());
  EXPECT_EQ(monitor.read().standing.kind, RunStanding::running);
  EXPECT_FALSE(monitor.read().last);
  const double now = seconds_since_1970();
  for (int step = 1; step <= 11; ++step)
    add_line(folder, "metrics.jsonl",
             nlohmann::json{{"step", step}, {"split", "train"}, {"loss", 3.0}, {"time", now + step}}
                 .dump());
  EXPECT_EQ(monitor.read().step, 11);
  EXPECT_NEAR(monitor.read().seconds_left.value(), 89, 0.01);  // a step a second
  events.add({.kind = "skip", .step = 11, .text = "the gradient is not finite"});
  EXPECT_EQ(monitor.read().skipped, 1);
  events.add({.kind = "fail", .step = 11, .text = "the disk is full"});
  EXPECT_FALSE(monitor.read().seconds_left) << "nobody works on the rest";
  events.add({.kind = "finish", .step = 11});
  EXPECT_EQ(monitor.read().standing.kind, RunStanding::finished);
}

TEST(RunMonitor, TakesBackStepsThatTheRunTookBack) {
  const TestFolder folder;
  make_metrics(folder, 0, 50);
  RunMonitor monitor(folder.path());
  EXPECT_EQ(monitor.read().step, 50);
  make_metrics(folder, 30, 31);
  EXPECT_EQ(monitor.read().step, 31);
  EXPECT_EQ(monitor.read().losses.size(), 31U);
}

TEST(RunMonitor, CountsTheClipsOfAGeneration) {
  const TestFolder folder;
  folder.write("run.json", "{\"finished\": false}");
  folder.write("config.yaml", "");
  make_timeline(folder);  // long ago
  std::filesystem::last_write_time(
      folder / "run.json", std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  folder.write(
      "manifest.0-of-2.jsonl",
      "{\"file\":\"a.wav\",\"status\":\"done\"}\n{\"file\":\"b.wav\",\"status\":\"failed\"}\n"
      "{\"file\":\"c.wav\",\"sta");
  RunMonitor monitor(folder.path());
  RunState run = monitor.read();
  EXPECT_EQ(run.work, "generate");
  EXPECT_EQ(run.clips, 1);
  EXPECT_EQ(run.failed, 1);
  EXPECT_EQ(run.standing.kind, RunStanding::stopped) << run.standing.words;
  add_line(folder, "timeline.jsonl", to_json_line({.time = seconds_since_1970()}));
  add_line(folder, "manifest.1-of-2.jsonl", "{\"file\":\"b.wav\",\"status\":\"done\"}");
  run = monitor.read();
  EXPECT_EQ(run.clips, 2);
  EXPECT_EQ(run.failed, 0) << "a second attempt made it";
  EXPECT_EQ(run.standing.kind, RunStanding::running);
  folder.write("run.json", "{\"finished\": true}");
  EXPECT_EQ(monitor.read().standing.kind, RunStanding::finished);
}

TEST(RunMonitor, TellsHowManyClipsAreLeftAndHowLongTheyTake) {
  const TestFolder folder;
  const double now = seconds_since_1970();
  folder.write("run.json", "{\"finished\": false, \"clips\": 10, \"started\": " +
                               std::to_string(now - 20) + "}");
  folder.write("config.yaml", "");
  add_line(folder, "timeline.jsonl", to_json_line({.time = now}));
  std::string manifest;
  for (int i = 0; i < 5; ++i) {
    const std::string name = std::to_string(i) + ".wav";
    manifest += "{\"file\":\"" + name + "\",\"status\":\"done\"}\n";
    const std::string file = folder.write("audio_samples/" + name, "");
    // One from the start before this one; the others now, as a batch is.
    if (i == 0)
      std::filesystem::last_write_time(
          file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  folder.write("manifest.0-of-1.jsonl", manifest + "{\"file\":\"x\",\"status\":\"failed\"}\n");
  RunMonitor monitor(folder.path());
  const RunState run = monitor.read();
  EXPECT_EQ(run.clips, 5);
  EXPECT_EQ(run.planned_clips, 10);
  EXPECT_NEAR(run.seconds_left.value(), 4 * 5.0, 2);  // four of them took twenty seconds
  const MonitorReading reading{.time = now, .run = run};
  const auto json = nlohmann::json::parse(to_json(reading));
  EXPECT_EQ(json["run"]["planned_clips"], 10);
  EXPECT_TRUE(json["run"]["seconds_left"].is_number());
  EXPECT_TRUE(holds(to_plain_line(reading), "  5/10 clips done, 1 failed  left "))
      << to_plain_line(reading);
  EXPECT_TRUE(holds(screen_lines(reading, {}, 80)[2].text, "  6/10 clips  left "))
      << screen_lines(reading, {}, 80)[2].text;
}

TEST(RunMonitor, ARunWhoseFolderIsGoneHasEnded) {
  for (const char* kind : {"metrics.jsonl", "run.json"}) {
    const TestFolder folder;
    folder.write(std::string("run/") + kind, "{\"step\":1,\"split\":\"train\"}\n");
    folder.write("run/config.yaml", "");
    RunMonitor monitor(folder / "run");
    monitor.read();
    std::filesystem::remove_all(folder / "run");
    const RunState run = monitor.read();
    EXPECT_EQ(run.standing.kind, RunStanding::stopped) << kind;
    EXPECT_EQ(run.standing.words, "its folder is not there any more");
  }
}

TEST(RunMonitor, TakesTheNewestOfAFolderOfRuns) {
  const TestFolder folder;
  folder.write("old/metrics.jsonl", "{\"step\":1,\"split\":\"train\"}\n");
  folder.write("new/metrics.jsonl", "{\"step\":2,\"split\":\"train\"}\n");
  folder.write("other/file", "");
  std::filesystem::last_write_time(
      folder / "old/metrics.jsonl",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(newest_run(folder.path()), folder / "new");
  EXPECT_EQ(newest_run(folder / "old"), folder / "old");
  EXPECT_EQ(error_of([&] { newest_run(folder / "other"); }).kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error_of([&] { newest_run(folder / "none"); }).what(), "there is no folder"));
}

TEST(MonitorReading, IsOneJsonDocument) {
  const TestFolder folder;
  make_whole_run(folder);
  RunMonitor monitor(folder.path());
  MonitorReading reading{.time = 1794771600, .run = monitor.read()};
  reading.gpus = {state_of({.name = "/GPU:0", .utilisation = 0.5, .used = 7, .limit = 9})};
  const auto json = nlohmann::json::parse(to_json(reading));
  EXPECT_EQ(json["run"]["state"], "finished");
  EXPECT_EQ(json["run"]["step"], 100);
  EXPECT_DOUBLE_EQ(json["run"]["loss"], made_step(100).loss);
  EXPECT_EQ(json["run"]["queues"]["moved"], 0.75);
  EXPECT_EQ(json["run"]["devices"][0]["name"], "/GPU:0");
  EXPECT_EQ(json["run"]["terms"]["text"], 0.5);
  EXPECT_TRUE(json["run"]["captures"].is_null());
  EXPECT_EQ(json["gpus"][0]["hardware"], "simulated GPU");
  EXPECT_EQ(json["gpus"][0]["utilisation"], 0.5);
  EXPECT_TRUE(json["gpus"][0]["power_watts"].is_null());
  EXPECT_TRUE(json["host"]["cpu_utilisation"].is_null());
  EXPECT_TRUE(nlohmann::json::parse(to_json({})).at("run").is_null());
}

TEST(MonitorReading, ShowsRunGpusAndHost) {
  const TestFolder folder;
  make_whole_run(folder);
  RunMonitor monitor(folder.path());
  MonitorReading reading{.run = monitor.read()};
  reading.host = {.cores = 2, .cpu = 0.5, .load = 1.25, .used = 1 << 30, .total = 2LL << 30};
  reading.gpus = {{.name = "GPU 0",
                   .hardware = "NVIDIA Pretend",
                   .utilisation = 0.97,
                   .used = 1ULL << 30,
                   .total = 24ULL << 30,
                   .power = 412,
                   .power_limit = 700,
                   .temperature = 61,
                   .sm_clock = 1215,
                   .sm_clock_highest = 1980,
                   .memory_clock = 3201,
                   .throttled = {"power cap"},
                   .received = 1048576,
                   .sent = 1024}};
  const std::string text = all_lines(reading);
  for (const char* part :
       {"100/100", "loss 2.1427  val 3.0000", "1000 tok/s", "queues ready  moved 75%",
        "412 of 700 W  61 °C  SM 1215 of 1980 MHz  memory 3201 MHz  PCIe in 1.0 MiB/s out 1.0 "
        "KiB/s",
        "clock held down: power cap", "2 cores  load 1.25", "1.0 GiB of 24.0 GiB"})
    EXPECT_TRUE(holds(text, part)) << part << "\n" << text;
  const std::string line = to_plain_line(reading);
  EXPECT_TRUE(holds(line, "step 100/100  loss 2.1427")) << line;
  EXPECT_TRUE(holds(line, "GPU 0 97% 1.0 GiB 412 W (power cap)")) << line;
  EXPECT_FALSE(holds(line, "\n"));
  EXPECT_TRUE(holds(all_lines({}), "no GPU of this machine"));
}

TEST(MonitorReading, KeepsWithinTheTerminalAndLetsNothingStrangeThrough) {
  MonitorReading reading{.run = RunState{.folder = "a\033[2J\x07"
                                                   "b",
                                         .work = "train"}};
  reading.run->standing.words = std::string(500, 'w');
  for (const MonitorLine& line : screen_lines(reading, {}, 40)) {
    size_t characters = 0;
    for (const char c : line.text) {
      EXPECT_GE(static_cast<unsigned char>(c), 0x20);
      characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }
    EXPECT_LE(characters, 40U) << line.text;
  }
  EXPECT_TRUE(holds(all_lines(reading), "a?[2J?b"));
  EXPECT_FALSE(holds(to_plain_line(reading), "\033"));
  EXPECT_EQ(fit("aä日z", 3), "aä日");
}

TEST(Sparkline, ShowsTheLastValuesBetweenLowAndHigh) {
  EXPECT_EQ(sparkline({0, 0.5, 1}, 10, 0, 1), "▁▅█");
  EXPECT_EQ(sparkline({9, 1, 2, 3}, 3), "▁▅█") << "the scale is of what is shown";
  EXPECT_EQ(sparkline({2, 2}, 5), "▁▁");
  EXPECT_EQ(sparkline({}, 5), "");
  EXPECT_EQ(sparkline({-1, 5}, 5, 0, 1), "▁█");
}

TEST(MonitorHistory, KeepsSharesByName) {
  MonitorHistory history;
  MonitorReading reading{.host = {.cpu = 0.25}, .gpus = {{.name = "GPU 0", .utilisation = 0.5}}};
  history.add(reading);
  reading.host.cpu = {};
  reading.gpus[0].utilisation = 1;
  history.add(reading);
  EXPECT_EQ(history.of("cpu"), std::vector<double>{0.25});
  EXPECT_EQ(history.of("GPU 0"), (std::vector<double>{0.5, 1}));
  EXPECT_TRUE(history.of("GPU 1").empty());
}

TEST(MonitorTerminal, DrawsAPictureInOnePieceWithoutClearingTheScreen) {
  const std::vector<MonitorLine> lines = {{"one", MonitorLine::title}, {"two"}, {"three"}};
  EXPECT_EQ(picture_bytes(lines, 2, false),
            "\033[?2026h\033[Hone\033[K\r\ntwo\033[K\033[J\033[?2026l");
  EXPECT_EQ(picture_bytes({{"bad", MonitorLine::bad}}, 9, true),
            "\033[?2026h\033[H\033[31mbad\033[0m\033[K\033[J\033[?2026l");
  EXPECT_FALSE(holds(picture_bytes(lines, 9, true), "\033[2J"));
}

}  // namespace tandem::tests
