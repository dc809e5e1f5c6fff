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
#include "train/gradient_reducer.h"
#include "train/parameter_store.h"
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
  for (int64_t step = 1; step <= 2; ++step) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] { step_on(*replicas[rank], step, {shares[rank]}); });
    for (auto& thread : threads) thread.join();
    // Every bucket is on its way before the pass ends, once it is known that its shape passes.
    if (step == 1) {
      EXPECT_EQ(replicas[0]->reduced_early(), 0);
    }
  }
  EXPECT_GE(replicas[0]->reduced_early(), 1);
  EXPECT_EQ(replicas[0]->reduced_early(), replicas[1]->reduced_early());
}

// A pass in two pieces, each with a parameter that fills a bucket. The second runs out of memory
// when it is told to, at a batch of more than one row.
class TwoPieces final : public Learner {
 public:
  std::vector<Phase> phases() override {
    return {{.name = "two", .tensors = {{"a", &a_}, {"b", &b_}}, .largest_norm = 0}};
  }
  std::vector<std::string> terms() const override { return {"loss"}; }
  std::vector<std::string> measures() const override { return {"loss"}; }
  std::vector<at::Tensor> sums() override { return {sums_}; }
  void finish_step(const StepValues&, const at::Tensor& taken) override {
    kept_ += sums_ * taken;
    sums_.zero_();
  }
  int pieces(size_t) const override { return 2; }
  size_t final_from(size_t, int piece) const override { return piece == 0 ? 1 : 0; }
  at::Tensor add_gradients(size_t phase, const Batch& batch, const StepValues& values) override {
    add_piece(phase, 0, batch, values);
    return add_piece(phase, 1, batch, values);
  }
  at::Tensor add_piece(size_t, int piece, const Batch& batch, const StepValues&) override {
    const at::NoGradGuard no_grad;
    const at::Tensor sum = batch.fields[0].sum();
    (piece == 0 ? b_ : a_).mutable_grad().add_(sum);
    if (piece == 0) sums_ += sum;
    if (piece == 1 && batch.fields[0].size(0) > 1 && std::exchange(fails, false))
      throw Error(ErrorKind::memory, "no memory left, in the middle of a pass");
    return sum.view({1});
  }
  Measured validate(const Batch& batch) override {
    if (batch.fields[0].size(0) > 2) throw Error(ErrorKind::memory, "no memory for so many rows");
    return {batch.fields[0].sum().view({1}), at::full({1}, batch.rows, at::kFloat), {}};
  }
  double kept() const { return kept_.item<double>(); }

  bool fails = false;

 private:
  static constexpr int64_t more_than_a_bucket = 6'700'000;  // numbers
  at::Tensor a_ = at::ones({more_than_a_bucket}), b_ = at::ones({more_than_a_bucket});
  at::Tensor sums_ = at::zeros({}), kept_ = at::zeros({});
};

Batch two_rows(double first) {
  return {.fields = {at::tensor({first, first + 1}, at::kFloat)}, .rows = 2, .whole_rows = 4};
}

TEST(Replicas, APassThatBreaksOffIsDoneAgainOrLeftOutByAll) {
  const auto devices = simulate_devices(3);
  const Config config = bytes_config();
  const std::vector<LogicalDevice*> two(devices.begin(), devices.begin() + 2);
  for (const int64_t broken : {1, 2}) {  // the step: before the shape has passed, and after
    SCOPED_TRACE(broken);
    auto group = make_in_process_group(two, std::chrono::seconds(60));
    std::vector<TwoPieces*> learners;
    const auto made = [&](LogicalDevice& device, Communicator* with) {
      auto learner = std::make_unique<TwoPieces>();
      learners.push_back(learner.get());
      return std::make_unique<Replica>(device, std::move(learner), config.training, with);
    };
    std::vector<std::unique_ptr<Replica>> replicas;
    for (size_t rank = 0; rank < 2; ++rank) replicas.push_back(made(*two[rank], group[rank].get()));
    const auto alone = made(*devices[2], nullptr);
    const bool left_out = broken == 2;
    const Captured said = capture([&] {
      for (int64_t step = 1; step <= 3; ++step) {
        learners[1]->fails = step == broken;
        std::vector<at::Tensor> outcomes(2);
        std::vector<std::thread> threads;
        for (size_t rank = 0; rank < 2; ++rank) {
          threads.emplace_back([&, rank] {
            outcomes[rank] = step_on(*replicas[rank], step, {two_rows(2.0 * rank + step)});
          });
        }
        for (auto& thread : threads) thread.join();
        EXPECT_EQ(replicas[1]->gave_up(), step == broken && left_out) << step;
        EXPECT_FALSE(replicas[0]->gave_up());
        const double was_taken = step == broken && left_out ? 0 : 1;
        for (const at::Tensor& outcome : outcomes)
          EXPECT_EQ(outcome[2].item<double>(), was_taken) << step;
        EXPECT_EQ(value_of(replicas[0]->checksum()), value_of(replicas[1]->checksum())) << step;
        if (was_taken == 0) continue;
        Batch whole = two_rows(step);
        whole.fields = {at::cat({two_rows(step).fields[0], two_rows(step + 2).fields[0]})};
        whole.rows = 4;
        step_on(*alone, step, {whole});
      }
    });
    EXPECT_GE(replicas[0]->reduced_early(), 1);
    EXPECT_EQ(replicas[1]->divisions(), 2);
    EXPECT_EQ(replicas[0]->divisions(), 1);
    EXPECT_LE(largest_difference(weights_of(*replicas[1]), weights_of(*alone)), 1e-6);
    // What replicas add up beside the gradients is of steps that were taken, and each row once.
    for (size_t rank = 0; rank < 2; ++rank) EXPECT_EQ(learners[rank]->kept(), learners[2]->kept());
    EXPECT_EQ(said.err.find("this step is left out") != std::string::npos, left_out) << said.err;
  }
}

// What it had added cannot be told from what the batch before it had.
TEST(Replicas, ABatchThatDoesNotFitBehindAnotherLeavesTheStepOut) {
  const auto devices = simulate_devices(3);
  const Config config = bytes_config(/*accumulation=*/2);
  const std::vector<LogicalDevice*> two(devices.begin(), devices.begin() + 2);
  auto group = make_in_process_group(two, std::chrono::seconds(60));
  group.push_back(nullptr);  // the third is alone, and has the rows of both
  std::vector<TwoPieces*> learners;
  std::vector<std::unique_ptr<Replica>> replicas;
  for (size_t rank = 0; rank < 3; ++rank) {
    auto learner = std::make_unique<TwoPieces>();
    learners.push_back(learner.get());
    replicas.push_back(std::make_unique<Replica>(*devices[rank], std::move(learner),
                                                 config.training, group[rank].get()));
  }
  capture([&] {
    for (const int64_t broken : {0, 2, 0}) {  // the batch of a step, counted from 1
      std::vector<at::Tensor> outcomes(3);
      std::vector<std::thread> threads;
      for (size_t rank = 0; rank < 3; ++rank) {
        threads.emplace_back([&, rank] {
          const std::vector<Batch> batches = {two_rows(rank + 1.0), two_rows(rank + 5.0)};
          outcomes[rank] =
              replicas[rank]->step({.step = 1, .learning_rate = 5e-4, .batch = [&](int64_t i) {
                                      learners[rank]->fails = rank != 1 && i + 1 == broken;
                                      return &batches[static_cast<size_t>(i)];
                                    }});
        });
      }
      for (auto& thread : threads) thread.join();
      const bool left_out = broken == 2;
      for (size_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(outcomes[rank][2].item<double>(), left_out ? 0 : 1) << rank << " " << broken;
        EXPECT_EQ(replicas[rank]->gave_up(), left_out && rank != 1) << rank << " " << broken;
      }
      EXPECT_EQ(value_of(replicas[0]->checksum()), value_of(replicas[1]->checksum())) << broken;
    }
  });
  EXPECT_EQ(learners[0]->kept(), 2 * (3 + 5 + 11 + 13)) << "sums of the steps that were taken";
  EXPECT_EQ(learners[2]->kept(), 2 * (7 + 15));
}

// Between tensors lies what nobody writes again.
TEST(Replicas, WhatIsLeftOutIsNoNumberInItsTensorsAlone) {
  const auto devices = simulate_devices(1);
  const DeviceScope scope(*devices[0]);
  const auto group = make_in_process_group({devices[0]}, std::chrono::seconds(60));
  at::Tensor sent = at::ones({70}), late = at::ones({70});
  const ParameterStore store({{"late", &late}, {"sent", &sent}}, /*average=*/false);
  GradientReducer reducer(store, *group[0], /*bucket_bytes=*/1);
  reducer.final_from(1);
  EXPECT_TRUE(reducer.break_off());
  const at::Tensor all = store.arenas().front().gradient;
  EXPECT_GT(all.numel(), 140);
  EXPECT_EQ(at::isnan(all).sum().item<int64_t>(), 70);
  EXPECT_TRUE(at::isnan(store.views()[0].gradient).all().item<bool>());
}

TEST(Replicas, ValidateInPartsWhatDoesNotFit) {
  const auto devices = simulate_devices(1);
  const Config config = bytes_config();
  const DeviceScope scope(*devices[0]);
  Replica replica(*devices[0], std::make_unique<TwoPieces>(), config.training, nullptr);
  const Batch batch{.fields = {at::arange(7, at::kFloat)}, .rows = 6, .whole_rows = 6};
  Measured found;
  const Captured said = capture([&] {
    for (int i = 0; i < 2; ++i) found = replica.validate(batch);
  });
  EXPECT_EQ(found.sums.item<double>(), 21);
  EXPECT_EQ(found.counts.item<double>(), 6);
  EXPECT_NE(said.err.find("validation is done in 4 parts"), std::string::npos) << said.err;
  const Batch one_row{.fields = {at::zeros({1, 3})}, .rows = 1, .whole_rows = 1};
  EXPECT_EQ(replica.validate(one_row).counts.item<double>(), 1);
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
