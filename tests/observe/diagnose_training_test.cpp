#include <gtest/gtest.h>

#include "data/feed/speech_corpus_folder.h"
#include "observe/diagnose/diagnosis.h"
#include "observe/diagnose/measure.h"
#include "observe/diagnose/storage.h"
#include "observe/diagnose/thread_time.h"
#include "observe/diagnose/training_subject.h"
#include "tandem/error.h"

namespace tandem {
namespace {

std::string some_text(const TestFolder& folder) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "the quick brown fox ";
  return folder.write("book.txt", text);
}

}  // namespace

TEST(DiagnoseTraining, AMirroredTrainingIsMeasuredAloneAndTogether) {
  configure_devices({.simulate_gpus = 2});
  const TestFolder folder;
  Config config;
  config.data.train_data = some_text(folder);
  config.data.batch_size = 2;
  config.training.multi_gpu = true;
  TrainingSubject subject(fit_for_diagnosis(config));
  const Figures figures = measure(subject, {.batches = 10, .most_seconds = 1});
  EXPECT_GT(figures.replay.median, 0);
  EXPECT_GT(figures.fed.median, 0);
  EXPECT_GT(figures.operations, 10);
  EXPECT_EQ(figures.rows, 2);
  ASSERT_EQ(figures.devices.size(), 2U);
  for (const DeviceFigures& device : figures.devices) EXPECT_GT(device.own_step, 0) << device.name;
  EXPECT_GT(figures.storage.rate, 0);
  const Circumstances now = subject.circumstances();
  EXPECT_EQ(now.strategy, StrategyKind::mirrored);
  EXPECT_FALSE(judge(figures, now).evidence.empty());
}

TEST(DiagnoseTraining, SpeechIsLearnedByTheDvaeWhereNoStageWasNamed) {
  configure_devices({.simulate_gpus = 1});
  const tests::SpeechFolder speech(12);
  Config config;
  config.data = tests::SpeechFolder::settings();
  config.data.batch_size = 2;
  config.data.train_data = speech.index;
  const Config fitted = fit_for_diagnosis(config);
  EXPECT_EQ(fitted.training.stage, "dvae");
  TrainingSubject subject(fitted);
  EXPECT_EQ(subject.files().size(), 12U);
  EXPECT_GT(subject.bytes_read_a_batch(), 10000);
  const Figures figures = measure(subject, {.batches = 10, .most_seconds = 1});
  EXPECT_GT(figures.host.wall, 0);
  EXPECT_GT(figures.host.on_core, 0);
  EXPECT_GT(figures.prepare, 0);
  EXPECT_GT(figures.batch_bytes, 0);
  EXPECT_EQ(figures.queues.size(), 3U);
}

TEST(DiagnoseTraining, NoDataIsRefused) {
  configure_devices({.simulate_gpus = 1});
  EXPECT_THROW(TrainingSubject{Config()}, Error);
}

TEST(DiagnoseTraining, AThreadKnowsWhereItsTimeWent) {
  const SpentTime before = thread_time();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const SpentTime slept = thread_time() - before;
  EXPECT_GE(slept.wall, 0.030);
  EXPECT_LT(slept.on_core, 0.015);
  EXPECT_LE(slept.on_core + slept.in_line, slept.wall + 0.005);
}

TEST(DiagnoseTraining, FilesAreReadFromTheDiskAndMissingOnesPassedOver) {
  const TestFolder folder;
  const std::string file = folder.write("a", std::string(1 << 20, 'x'));
  const ColdRead cold = read_cold({file, (folder / "missing").string()});
  EXPECT_EQ(cold.bytes, uint64_t{1} << 20);
  EXPECT_GT(cold.rate, 0);
  EXPECT_GT(cold.rate_of_four, 0);
  EXPECT_GE(cold.useful_readers, 1);
  EXPECT_EQ(read_cold({(folder / "missing").string()}).bytes, 0U);
  EXPECT_EQ(read_cold({}).useful_readers, 0);
}

}  // namespace tandem
