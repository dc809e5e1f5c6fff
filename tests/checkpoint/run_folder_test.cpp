#include "checkpoint/run_folder.h"

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
namespace {

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST(RunFolder, GivesBackWhatWasSavedBitForBit) {
  const Scratch scratch;
  const RunFolder folder(scratch / "new" / "run");
  Checkpoint saved = checkpoint_of(7);
  saved.state.last_loss = 0.1 + 0.2;
  saved.weights[0].second = at::randn({3, 2});
  folder.save(saved, false, 3);
  const auto loaded = folder.load_latest();
  ASSERT_TRUE(loaded);
  for (const auto& [name, tensor] : saved.weights)
    EXPECT_TRUE(same_bits(find(loaded->weights, name), tensor)) << name;
  for (const auto& [name, tensor] : saved.optimizer)
    EXPECT_TRUE(same_bits(find(loaded->optimizer, name), tensor)) << name;
  EXPECT_EQ(loaded->state.step, 7);
  EXPECT_EQ(loaded->state.next_batch, 14);
  EXPECT_FALSE(loaded->state.finished);
  EXPECT_EQ(loaded->state.best_loss, 7.0 / 3);
  EXPECT_EQ(loaded->state.last_loss, 0.1 + 0.2);
}

TEST(RunFolder, WithoutACheckpointThereIsNothingToLoad) {
  const Scratch scratch;
  EXPECT_FALSE(RunFolder(scratch.path()).load_latest());
  EXPECT_FALSE(RunFolder(scratch / "missing").latest_state());
}

TEST(RunFolder, ARunWithoutValidationHasNoBestLoss) {
  const Scratch scratch;
  Checkpoint checkpoint = checkpoint_of(1, true);
  checkpoint.state.best_loss.reset();
  RunFolder(scratch.path()).save(checkpoint, false, 1);
  EXPECT_FALSE(RunFolder(scratch.path()).latest_state()->best_loss);
  EXPECT_TRUE(RunFolder(scratch.path()).latest_state()->finished);
}

TEST(RunFolder, LatestFollowsAndBestStays) {
  const Scratch scratch;
  const RunFolder folder(scratch.path());
  folder.save(checkpoint_of(10), true, 9);
  folder.save(checkpoint_of(20), false, 9);
  EXPECT_EQ(fs::read_symlink(scratch / "latest"), "step-20");
  EXPECT_EQ(fs::read_symlink(scratch / "best"), "step-10");
  EXPECT_EQ(names_in(scratch / "latest"), (Names{"model.safetensors", "optimizer.safetensors", "state.json"}));
}

TEST(RunFolder, KeepsTheNewestAndTheBest) {
  const Scratch scratch;
  const RunFolder folder(scratch.path());
  for (const int64_t step : {9, 10, 11, 100}) folder.save(checkpoint_of(step), step == 9, 2);
  EXPECT_EQ(names_in(scratch.path()), (Names{"best", "latest", "step-100", "step-11", "step-9"}));
  folder.save(checkpoint_of(101), false, 0);
  EXPECT_EQ(names_in(scratch.path()), (Names{"best", "latest", "step-101", "step-9"}));
}

TEST(RunFolder, NeverRemovesWhatLatestNames) {
  const Scratch scratch;
  const RunFolder folder(scratch.path());
  folder.save(checkpoint_of(100), false, 1);
  // A later checkpoint `latest` was never moved onto: its process was killed, or a user went back.
  fs::copy(scratch / "step-100", scratch / "step-200");
  folder.save(checkpoint_of(150), false, 1);
  ASSERT_TRUE(fs::exists(scratch / "step-150"));
  EXPECT_EQ(folder.load_latest()->state.step, 150);
}

TEST(RunFolder, SavesAStepAgainOverTheOldOne) {
  const Scratch scratch;
  const RunFolder folder(scratch.path());
  folder.save(checkpoint_of(5), false, 3);
  Checkpoint other = checkpoint_of(5);
  other.state.last_loss = 42;
  folder.save(other, false, 3);
  EXPECT_EQ(folder.latest_state()->last_loss, 42);
  EXPECT_EQ(names_in(scratch.path()), (Names{"latest", "step-5"}));
}

TEST(RunFolder, ADamagedLatestNamesTheOneBefore) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const Scratch scratch;
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
    EXPECT_EQ(thrown.hint, "point `" + (scratch / "latest").string() +
                               "` at `step-10`, the one before it");
  }
}

TEST(RunFolder, ADamagedOnlyCheckpointAdvisesAFreshStart) {
  const Scratch scratch;
  RunFolder(scratch.path()).save(checkpoint_of(10), false, 3);
  put(scratch / "latest" / "state.json", "{\"step\": 1.5");
  const Thrown thrown = thrown_by([&] { RunFolder(scratch.path()).load_latest(); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(contains(thrown.sentence, "is not a run's state")) << thrown.sentence;
  EXPECT_EQ(thrown.hint, "start again with --fresh");
}

TEST(RunFolder, ALatestThatLeadsNowhereIsAnErrorNotANewRun) {
  const Scratch scratch;
  const RunFolder folder(scratch.path());
  folder.save(checkpoint_of(10), false, 3);
  folder.save(checkpoint_of(20), false, 3);
  remove_tree(scratch / "step-20");
  const Thrown thrown = thrown_by([&] { folder.load_latest(); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.hint, "at `step-10`")) << thrown.hint;
  EXPECT_TRUE(choose_run_folder(scratch.path(), false, "f").resumes);
}

TEST(RunFolder, AFolderThatCannotBeMadeIsAnIoError) {
  const Scratch scratch;
  put(scratch / "plain", "");
  const Thrown thrown =
      thrown_by([&] { RunFolder(scratch / "plain" / "run").save(checkpoint_of(1), false, 1); });
  EXPECT_EQ(thrown.kind, "io");
}

TEST(RunFolder, KilledWhileSavingAlwaysLeavesALatestThatLoads) {
  const Scratch scratch;
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
