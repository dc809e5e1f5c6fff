// A model device whose limit a whole batch passes and half of one does not. Nothing is planted: the
// device's ledger refuses.
#include <gtest/gtest.h>

#include "checkpoint/run_folder.h"
#include "train/seen_run.h"
#include "train/voice_corpus.h"

namespace tandem {
namespace {

DeviceRequest with_limit(std::optional<int64_t> megabytes) {
  return {.data_gpu = "0",
          .model_gpu = "1",
          .simulate_gpus = 2,
          .memory_isolation = megabytes.has_value(),
          .model_gpu_memory = megabytes};
}

// Megabytes the model device holds at most.
int64_t peak_of(const Config& config) {
  const TestFolder folder;
  const tests::ChildEnd end = tests::in_child([&] {
    configure_devices(with_limit({}));
    std::ofstream(folder / "peak") << (train(config).devices.at("/GPU:1").peak_bytes >> 20);
  });
  EXPECT_EQ(end.code, 0) << end.err;
  int64_t megabytes = 0;
  std::ifstream(folder / "peak") >> megabytes;
  return megabytes;
}

size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Ends in this process, with a limit between the peaks of a whole batch and of half of one.
void expect_parts(const Config& config) {
  const std::string folder = config.paths.checkpoint_dir;
  const auto named = [&](const std::string& name, int64_t batch_size) {
    Config one = config;
    one.data.batch_size = batch_size;
    one.paths.checkpoint_dir = folder + name;
    return one;
  };
  const int64_t rows = config.data.batch_size;
  const int64_t whole = peak_of(named("-whole", rows)), half = peak_of(named("-half", rows / 2));
  const int64_t limit = (whole + half) / 2;
  ASSERT_LT(half + 1, limit);
  ASSERT_LT(limit + 1, whole);
  const Figures roomy = figures_on(with_limit({}), named("-roomy", rows));

  capture([&] { configure_devices(with_limit(limit)); });
  std::vector<std::string> events;
  TrainHooks hooks;
  hooks.on_event = [&](int64_t, const std::string& kind, const std::string& text) {
    events.push_back(kind + ": " + text);
  };
  const Seen seen = run(config, hooks);
  ASSERT_FALSE(seen.failed) << seen.error.what();
  EXPECT_EQ(seen.result.last_step, *config.training.max_steps);
  EXPECT_LE(seen.result.devices.at("/GPU:1").peak_bytes, static_cast<uint64_t>(limit) << 20);
  EXPECT_EQ(times(seen.err, "ran out of memory"), 1u) << seen.err;
  EXPECT_NE(seen.err.find("/GPU:1 ran out of memory: batches are worked on in 2 parts from now on; "
                          "the effective batch stays\n"),
            std::string::npos)
      << seen.err;
  EXPECT_EQ(events, std::vector<std::string>{
                        "memory: parts a batch is worked on in, for want of memory: /GPU:1 in 2"});
  const RunState ended = RunFolder(folder).latest_state().value();
  EXPECT_EQ(ended.divisions, std::vector<int64_t>{2});
  EXPECT_EQ(ended.skipped, 0);
  expect_near(seen.figures, roomy, 1e-5);
}

TEST(MemoryLimitRuns, BytesGoOnInHalfBatches) {
  const TestFolder folder;
  Config config;
  config.data.train_data = TANDEM_SOURCE_DIR "/LICENSE";
  config.data.batch_size = 32;
  config.data.buffer_size = 6;
  config.data.model_start_delay = 0.1;
  config.training.max_steps = 6;
  config.training.val_step = 3;
  config.paths.checkpoint_dir = (folder / "run").string();
  expect_parts(config);
}

// Its codebook adds up what chose each code: once, whatever broke off.
TEST(MemoryLimitRuns, ADvaeGoesOnInHalfBatches) {
  const VoiceCorpus corpus;
  Config config = corpus.config("dvae", 6, "run");
  config.data.batch_size = 8;
  config.data.buckets = 1;
  config.training.val_step = 3;
  config.observe.sample_count = 0;
  expect_parts(config);
}

}  // namespace
}  // namespace tandem
