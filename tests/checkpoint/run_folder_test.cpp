#include "checkpoint/run_folder.h"

#include <gtest/gtest.h>

#include "checkpoint/checkpoints.h"
#include "nn/tensors.h"
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
  const TestFolder scratch;
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
  const TestFolder scratch;
  EXPECT_FALSE(RunFolder(scratch.path()).load_latest());
  EXPECT_FALSE(RunFolder(scratch / "missing").latest_state());
}

TEST(RunFolder, ARunWithoutValidationHasNoBestLoss) {
  const TestFolder scratch;
  Checkpoint checkpoint = checkpoint_of(1, true);
  checkpoint.state.best_loss.reset();
  RunFolder(scratch.path()).save(checkpoint, false, 1);
  EXPECT_FALSE(RunFolder(scratch.path()).latest_state()->best_loss);
  EXPECT_TRUE(RunFolder(scratch.path()).latest_state()->finished);
}

TEST(RunFolder, LatestFollowsAndBestStays) {
  const TestFolder scratch;
  const RunFolder folder(scratch.path());
  folder.save(checkpoint_of(10), true, 9);
  folder.save(checkpoint_of(20), false, 9);
  EXPECT_EQ(fs::read_symlink(scratch / "latest"), "step-20");
  EXPECT_EQ(fs::read_symlink(scratch / "best"), "step-10");
  EXPECT_EQ(names_in(scratch / "latest"),
            (Names{"model.safetensors", "optimizer.safetensors", "state.json"}));
}

TEST(RunFolder, KeepsTheNewestAndTheBest) {
  const TestFolder scratch;
  const RunFolder folder(scratch.path());
  for (const int64_t step : {9, 10, 11, 100}) folder.save(checkpoint_of(step), step == 9, 2);
  EXPECT_EQ(names_in(scratch.path()), (Names{"best", "latest", "step-100", "step-11", "step-9"}));
  folder.save(checkpoint_of(101), false, 0);
  EXPECT_EQ(names_in(scratch.path()), (Names{"best", "latest", "step-101", "step-9"}));
}

TEST(RunFolder, NeverRemovesWhatLatestNames) {
  const TestFolder scratch;
  const RunFolder folder(scratch.path());
  folder.save(checkpoint_of(100), false, 1);
  // A later checkpoint `latest` was never moved onto: its process was killed, or a user went back.
  fs::copy(scratch / "step-100", scratch / "step-200");
  folder.save(checkpoint_of(150), false, 1);
  ASSERT_TRUE(fs::exists(scratch / "step-150"));
  EXPECT_EQ(folder.load_latest()->state.step, 150);
}

TEST(RunFolder, SavesAStepAgainOverTheOldOne) {
  const TestFolder scratch;
  const RunFolder folder(scratch.path());
  folder.save(checkpoint_of(5), false, 3);
  Checkpoint other = checkpoint_of(5);
  other.state.last_loss = 42;
  folder.save(other, false, 3);
  EXPECT_EQ(folder.latest_state()->last_loss, 42);
  EXPECT_EQ(names_in(scratch.path()), (Names{"latest", "step-5"}));
}

TEST(RunFolder, AFolderThatCannotBeMadeIsAnIoError) {
  const TestFolder scratch;
  put(scratch / "plain", "");
  const Thrown thrown =
      thrown_by([&] { RunFolder(scratch / "plain" / "run").save(checkpoint_of(1), false, 1); });
  EXPECT_EQ(thrown.kind, "io");
}

}  // namespace tandem::tests
