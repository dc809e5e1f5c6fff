#include <gtest/gtest.h>

#include <fmt/format.h>

#include "observe/diagnose/diagnosis.h"
#include "observe/diagnose/recorded.h"
#include "observe/made_run.h"
#include "tandem/error.h"

namespace tandem {
namespace {

// A run of 300 steps as its folder tells it.
struct RecordedCase {
  TestFolder folder;
  std::string settings = "data:\n  num_workers: 1\n  batch_size: 16\n";
  double wait = 0.01;
  double captures_a_step = 0;
  double slowing = 0;  // share by which the last step is slower than the first
  std::string device = R"("utilisation":0.95,"used":100,"limit":1000)";
  std::string queues = R"("loaded":1.0,"prepared":1.0,"moved":1.0)";

  Diagnosis judged() const {
    std::string metrics, timeline;
    double time = 1.79e9;
    for (int step = 1; step <= 300; ++step) {
      const double seconds = 0.1 * (1 + slowing * step / 300);
      time += seconds;
      metrics += fmt::format(
          "{{\"step\":{},\"split\":\"train\",\"loss\":1.0,\"tokens_per_second\":{},"
          "\"wait_share\":{},\"captures\":{},\"time\":{:.3f}}}\n",
          step, 1000 / seconds, wait, std::floor(captures_a_step * step), time);
      timeline += fmt::format(
          "{{\"time\":{:.3f},\"devices\":{{\"/GPU:0\":{{{}}}}},"
          "\"queues\":{{{}}}}}\n",
          time, device, queues);
    }
    folder.write("config.yaml", settings);
    folder.write("metrics.jsonl", metrics);
    folder.write("timeline.jsonl", timeline);
    const RecordedRun run = recorded_figures(folder.path());
    EXPECT_TRUE(run.figures.recorded);
    EXPECT_NEAR(run.figures.fed.median, 0.1 * (1 + slowing / 2), 0.02);
    return judge(run.figures, run.now);
  }
  std::string verdict() const { return to_string(judged().verdict); }
};

}  // namespace

TEST(DiagnoseRecorded, ARunThatWaitsForNothingIsFed) { EXPECT_EQ(RecordedCase().verdict(), "fed"); }

TEST(DiagnoseRecorded, TheQueueThatRunsEmptyNamesTheStageBeforeIt) {
  RecordedCase run;
  run.wait = 0.4;
  run.queues = R"("loaded":0.2,"prepared":0.1,"moved":0.1)";
  run.settings = "data:\n  num_workers: 1024\n";  // more than any machine has cores
  EXPECT_EQ(run.verdict(), "decode-bound");
  run.queues = R"("loaded":0.98,"prepared":0.1,"moved":0.1)";
  EXPECT_EQ(run.verdict(), "data-device-bound");
  run.queues = R"("loaded":0.98,"prepared":0.97,"moved":0.9)";
  EXPECT_EQ(run.verdict(), "queue-too-small");
  EXPECT_NEAR(run.judged().expected_gain, 0.4, 0.01);
}

TEST(DiagnoseRecorded, CapturesMemoryAndClocksAreSeen) {
  RecordedCase captured;
  captured.captures_a_step = 1;
  EXPECT_EQ(captured.verdict(), "recapturing");
  RecordedCase full;
  full.device = R"("utilisation":0.95,"used":970,"limit":1000)";
  EXPECT_EQ(full.verdict(), "memory-pressure");
  RecordedCase hot;
  hot.device = R"("utilisation":0.95,"used":1,"limit":1000,"clock":0.55,"braked":true)";
  EXPECT_EQ(hot.verdict(), "throttled");
  EXPECT_NEAR(hot.judged().expected_gain, 0.45, 1e-6);
  RecordedCase slowing;
  slowing.slowing = 0.6;
  EXPECT_EQ(slowing.verdict(), "throttled");
}

TEST(DiagnoseRecorded, AMemoryEventMeansThatBatchesDidNotFit) {
  const TestFolder folder;
  tests::make_whole_run(folder);
  const RecordedRun run = recorded_figures(folder.path());
  EXPECT_EQ(to_string(judge(run.figures, run.now).verdict), "memory-pressure");
}

TEST(DiagnoseRecorded, ARunThatHasHardlyBegunIsRefused) {
  const TestFolder folder;
  tests::make_metrics(folder, 0, 3);
  try {
    recorded_figures(folder.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find("3 steps"), std::string::npos) << error.what();
  }
  EXPECT_THROW(recorded_figures(folder / "nothing"), Error);
}

}  // namespace tandem
