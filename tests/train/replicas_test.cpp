// Replicas stay identical, and together equal one device with the whole batch.
#include <gtest/gtest.h>

#include <thread>

#include "data/feed/feed.h"
#include "data/order/batch_order.h"
#include "device/communicator.h"
#include "device/simulated.h"
#include "nn/checksum.h"
#include "train/replica.h"

namespace tandem {
namespace {

constexpr ByteGptSize small{.layers = 2, .width = 32, .heads = 2, .context = 32};
constexpr double learning_rate = 5e-4;
constexpr int64_t batch_size = 10;  // does not divide by 4: the last replica takes the remainder

int64_t value_of(const at::Tensor& scalar) { return scalar.const_data_ptr<int64_t>()[0]; }

double largest_difference(NamedTensors a, NamedTensors b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const at::Tensor difference = (a[i].second - b[i].second).abs().max().to(at::kDouble);
    largest = std::max(largest, difference.const_data_ptr<double>()[0]);
  }
  return largest;
}

TEST(Replicas, StayBitIdenticalAndEqualOneDeviceWithTheWholeBatch) {
  const auto devices = simulate_devices(5);
  const std::vector<LogicalDevice*> four(devices.begin(), devices.begin() + 4);
  ByteCorpus corpus(TANDEM_SOURCE_DIR "/LICENSE", small.context);
  auto group = make_in_process_group(four, std::chrono::seconds(60));
  std::vector<std::unique_ptr<Replica>> replicas;
  for (LogicalDevice* device : four)
    replicas.push_back(std::make_unique<Replica>(*device, small, 1, learning_rate));
  Replica alone(*devices[4], small, 1, learning_rate);

  for (int step = 0; step < 50; ++step) {
    std::vector<Batch> parts;
    for (int rank = 0; rank < 4; ++rank) {
      const Part part = part_of(batch_size, 4, rank);
      parts.push_back(corpus.train_batch(7, step, part.first, part.count));
      parts.back().whole_rows = batch_size;
    }
    Batch whole = corpus.train_batch(7, step, 0, batch_size);
    whole.whole_rows = batch_size;

    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&, rank] {
        replicas[rank]->add_gradients(parts[rank]);
        replicas[rank]->update(group[rank].get(), 1);
      });
    }
    for (auto& thread : threads) thread.join();
    alone.add_gradients(whole);
    alone.update(nullptr, 1);

    const int64_t expected = value_of(replicas[0]->checksum());
    for (const auto& replica : replicas)
      EXPECT_EQ(value_of(replica->checksum()), expected) << "step " << step;
  }
  EXPECT_LE(largest_difference(replicas[0]->weights(), alone.weights()), 1e-6);
}

TEST(Replicas, AccumulatedHalvesEqualTheWholeBatch) {
  const auto devices = simulate_devices(2);
  ByteCorpus corpus(TANDEM_SOURCE_DIR "/LICENSE", small.context);
  Replica halves(*devices[0], small, 1, learning_rate), whole(*devices[1], small, 1, learning_rate);
  for (int step = 0; step < 3; ++step) {
    for (int64_t first : {0, 4}) {
      Batch half = corpus.train_batch(7, step, first, 4);
      half.whole_rows = 4;
      halves.add_gradients(half);
    }
    halves.update(nullptr, 2);
    Batch all = corpus.train_batch(7, step, 0, 8);
    all.whole_rows = 8;
    whole.add_gradients(all);
    whole.update(nullptr, 1);
  }
  EXPECT_LE(largest_difference(halves.weights(), whole.weights()), 1e-6);
}

}  // namespace
}  // namespace tandem
