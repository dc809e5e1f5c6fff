// Replicas stay identical, and together equal one device with the whole batch.
#include <gtest/gtest.h>

#include <thread>

#include "data/order/batch_order.h"
#include "device/communicator.h"
#include "device/device_scope.h"
#include "device/simulated.h"
#include "nn/checksum.h"
#include "support/captured.h"
#include "tandem/config.h"
#include "train/replica.h"
#include "train/stages/byte_stage.h"

namespace tandem {
namespace {

constexpr int64_t batch_size = 10;  // does not divide by 4: the last replica takes the remainder

Config bytes_config(int64_t accumulation = 1) {
  Config config;
  config.data.train_data = TANDEM_SOURCE_DIR "/LICENSE";
  config.data.batch_size = batch_size;
  config.training.seed = 1;
  config.training.gradient_accumulation_steps = accumulation;
  return config;
}

int64_t value_of(const at::Tensor& scalar) { return scalar.const_data_ptr<int64_t>()[0]; }

NamedTensors weights_of(Replica& replica) {
  Replica::Snapshot snapshot;
  replica.copy_to(snapshot);
  NamedTensors weights = replica.checkpoint(snapshot).weights;
  for (auto& [name, tensor] : weights) tensor = tensor.clone();
  return weights;
}

double largest_difference(const NamedTensors& a, const NamedTensors& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, (a[i].second - b[i].second).abs().max().item<double>());
  return largest;
}

at::Tensor step_on(Replica& replica, int64_t step, const std::vector<Batch>& batches,
                   bool out_of_memory = false) {
  return replica.step({.step = step,
                       .learning_rate = 5e-4,
                       .out_of_memory = out_of_memory,
                       .batch = [&](int64_t i) { return &batches[static_cast<size_t>(i)]; }});
}

std::unique_ptr<Replica> replica_on(LogicalDevice& device, ByteStage& stage, const Config& config,
                                    Communicator* group = nullptr) {
  DeviceScope scope(device);
  return std::make_unique<Replica>(device, stage.make_learner(device), config.training, group);
}

Batch rows_from(ByteCorpus& corpus, int64_t step, int64_t first, int64_t count, int64_t whole) {
  Batch batch = corpus.train_batch(7, step, first, count);
  batch.rows = count;
  batch.whole_rows = whole;
  return batch;
}

TEST(Replicas, StayBitIdenticalAndEqualOneDeviceWithTheWholeBatch) {
  const auto devices = simulate_devices(5);
  const std::vector<LogicalDevice*> four(devices.begin(), devices.begin() + 4);
  const Config config = bytes_config();
  ByteStage stage(config);
  ByteCorpus corpus(*config.data.train_data, byte_gpt_size("tiny").context);
  auto group = make_in_process_group(four, std::chrono::seconds(60));
  std::vector<std::unique_ptr<Replica>> replicas;
  for (size_t rank = 0; rank < 4; ++rank)
    replicas.push_back(replica_on(*four[rank], stage, config, group[rank].get()));
  const auto alone_owned = replica_on(*devices[4], stage, config);
  Replica& alone = *alone_owned;
  const NamedTensors start = weights_of(alone);

  for (int step = 1; step <= 20; ++step) {
    std::vector<std::vector<Batch>> parts;
    for (int rank = 0; rank < 4; ++rank) {
      const Part part = part_of(batch_size, 4, rank);
      parts.push_back({rows_from(corpus, step, part.first, part.count, batch_size)});
    }
    std::vector<double> losses(4);
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&, rank] {
        losses[rank] = step_on(*replicas[rank], step, parts[rank])[0].item<double>();
      });
    }
    for (auto& thread : threads) thread.join();
    const at::Tensor whole =
        step_on(alone, step, {rows_from(corpus, step, 0, batch_size, batch_size)});
    for (const double loss : losses) EXPECT_NEAR(loss, whole[0].item<double>(), 1e-6);
    const int64_t expected = value_of(replicas[0]->checksum());
    for (const auto& replica : replicas)
      EXPECT_EQ(value_of(replica->checksum()), expected) << "step " << step;
  }
  EXPECT_GT(largest_difference(start, weights_of(alone)), 1e-3);
  EXPECT_LE(largest_difference(weights_of(*replicas[0]), weights_of(alone)), 2e-6);
}

TEST(Replicas, ReduceGradientsWhileTheBackwardPassRuns) {
  const auto devices = simulate_devices(2);
  const Config config = bytes_config();
  ByteStage stage(config);
  ByteCorpus corpus(*config.data.train_data, byte_gpt_size("tiny").context);
  auto group = make_in_process_group(devices, std::chrono::seconds(60));
  std::vector<std::unique_ptr<Replica>> replicas;
  for (size_t rank = 0; rank < 2; ++rank)
    replicas.push_back(replica_on(*devices[rank], stage, config, group[rank].get()));
  // A corpus has one reader.
  const std::vector<Batch> shares = {rows_from(corpus, 1, 0, 5, batch_size),
                                     rows_from(corpus, 1, 5, 5, batch_size)};
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] { step_on(*replicas[rank], 1, {shares[rank]}); });
  for (auto& thread : threads) thread.join();
  // Every bucket was on its way before the pass had ended.
  EXPECT_GE(replicas[0]->reduced_early(), 1);
  EXPECT_EQ(replicas[0]->reduced_early(), replicas[1]->reduced_early());
}

TEST(Replicas, AccumulatedHalvesEqualTheWholeBatch) {
  const auto devices = simulate_devices(2);
  const Config once = bytes_config(), twice = bytes_config(2);
  ByteStage stage(once);
  ByteCorpus corpus(*once.data.train_data, byte_gpt_size("tiny").context);
  const auto first = replica_on(*devices[0], stage, twice),
             second = replica_on(*devices[1], stage, once);
  Replica &halves = *first, &whole = *second;
  for (int step = 1; step <= 3; ++step) {
    step_on(halves, step, {rows_from(corpus, step, 0, 4, 4), rows_from(corpus, step, 4, 4, 4)});
    step_on(whole, step, {rows_from(corpus, step, 0, 8, 8)});
  }
  EXPECT_LE(largest_difference(weights_of(halves), weights_of(whole)), 1e-6);
}

TEST(Replicas, WorkOnPartsOfABatchThatDoesNotFitAndKeepTheEffectiveBatch) {
  const auto devices = simulate_devices(2);
  const Config config = bytes_config();
  ByteStage stage(config);
  ByteCorpus corpus(*config.data.train_data, byte_gpt_size("tiny").context);
  const auto first = replica_on(*devices[0], stage, config),
             second = replica_on(*devices[1], stage, config);
  Replica &cramped = *first, &roomy = *second;
  const Captured said = capture([&] {
    for (int step = 1; step <= 4; ++step) {
      const std::vector<Batch> batch = {rows_from(corpus, step, 0, 8, 8)};
      step_on(cramped, step, batch, /*out_of_memory=*/step == 2);
      step_on(roomy, step, batch);
    }
  });
  EXPECT_EQ(cramped.divisions(), 2);
  EXPECT_EQ(roomy.divisions(), 1);
  EXPECT_LE(largest_difference(weights_of(cramped), weights_of(roomy)), 1e-6);
  EXPECT_NE(said.err.find("/GPU:0 ran out of memory: batches are worked on in 2 parts"),
            std::string::npos)
      << said.err;
}

}  // namespace
}  // namespace tandem
