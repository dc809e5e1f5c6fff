#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "checkpoint/checkpoints.h"
#include "nn/tensors.h"
#include "util/atomic_file.h"
#include "util/child.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace fs = std::filesystem;

TEST(RunFolder, ADamagedLatestNamesTheOneBefore) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const TestFolder scratch;
    const RunFolder folder(scratch.path());
    folder.save(checkpoint_of(10), false, 3);
    folder.save(checkpoint_of(20), false, 3);
    const std::string bytes = contents(scratch / "latest" / file);
    put(scratch / "latest" / file, bytes.substr(0, bytes.size() / 2));
    const Thrown thrown = thrown_by([&] { folder.load_latest(); });
    EXPECT_EQ(thrown.kind, "corrupt");
    EXPECT_TRUE(thrown.sentence.starts_with("the latest checkpoint of `" + scratch.path().string() +
                                            "` cannot be used: `"))
        << thrown.sentence;
    EXPECT_TRUE(contains(thrown.sentence, file)) << thrown.sentence;
    EXPECT_EQ(thrown.hint,
              "point `" + (scratch / "latest").string() + "` at `step-10`, the one before it");
  }
}

TEST(RunFolder, ADamagedOnlyCheckpointAdvisesAFreshStart) {
  const TestFolder scratch;
  RunFolder(scratch.path()).save(checkpoint_of(10), false, 3);
  for (const auto& [text, fault] : {std::pair("{\"step\": 1.5", "is empty or cut short"),
                                    std::pair("", "is empty or cut short"),
                                    std::pair("{\"step\": \"ten\"}", "is not a run's state")}) {
    put(scratch / "latest" / "state.json", text);
    const Thrown thrown = thrown_by([&] { RunFolder(scratch.path()).load_latest(); });
    EXPECT_EQ(thrown.kind, "corrupt");
    EXPECT_TRUE(contains(thrown.sentence, fault)) << thrown.sentence;
    EXPECT_EQ(thrown.hint, "start again with --fresh");
  }
}

TEST(RunFolder, ALatestThatLeadsNowhereIsAnErrorNotANewRun) {
  const TestFolder scratch;
  const RunFolder folder(scratch.path());
  folder.save(checkpoint_of(10), false, 3);
  folder.save(checkpoint_of(20), false, 3);
  remove_tree(scratch / "step-20");
  const Thrown thrown = thrown_by([&] { folder.load_latest(); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.hint, "at `step-10`")) << thrown.hint;
  EXPECT_TRUE(choose_run_folder(scratch.path(), false, "f").resumes);
}

TEST(RunFolder, KilledWhileSavingAlwaysLeavesALatestThatLoads) {
  const TestFolder scratch;
  const RunFolder folder(scratch.path());
  folder.save(checkpoint_of(1), true, 2);
  const auto start = std::chrono::steady_clock::now();
  folder.save(checkpoint_of(2), false, 2);
  const auto save_time = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start);
  const auto longest = static_cast<unsigned>(std::min<int64_t>(4 * save_time.count(), 400'000));
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    const int64_t from = folder.latest_state()->step;
    EXPECT_TRUE(killed_after(random() % longest, [&] {
      for (int64_t step = from + 1;; ++step) folder.save(checkpoint_of(step), step % 5 == 0, 2);
    }));
    FolderDraft::remove_leftovers(scratch.path());
    const auto loaded = folder.load_latest();
    ASSERT_TRUE(loaded) << "round " << round;
    ASSERT_GE(loaded->state.step, from);
    const Checkpoint expected = checkpoint_of(loaded->state.step);
    ASSERT_TRUE(same_bits(find(loaded->weights, "a.weight"), expected.weights[0].second));
    ASSERT_TRUE(same_bits(find(loaded->optimizer, "a.weight.mean"), expected.optimizer[0].second));
    ASSERT_TRUE(fs::exists(scratch / "best")) << "the best checkpoint was removed";
  }
  EXPECT_GT(folder.latest_state()->step, 2) << "no round got as far as one save";
}

}  // namespace tandem::tests
