// The feed on a real GPU: nothing is read from a buffer that was released, and training at the size
// of XTTS v2 does not wait for data. The stand-in for its GPT has the same trunk: 30 layers of
// width 1024. Figures are printed.
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>

#include "data/feed/feed.h"
#include "data/feed/made_batches.h"
#include "data/feed/speech_corpus_folder.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "gpu/in_child.h"
#include "models/bytes/byte_gpt.h"
#include "models/bytes/byte_gpt.h"
#include "util/clock.h"

namespace tandem::tests {
namespace {

LogicalDevice& gpu(int index) {
  return DeviceRegistry::get().find("/GPU:" + std::to_string(index));
}

// Batches whose preparation takes the GPU a while, so that a copy that did not wait would be early.
struct SlowBatches : MadeBatches {
  Batch prepare(const HostBatch& host) override {
    const auto options = at::TensorOptions().device(at::kCUDA).dtype(at::kFloat);
    at::Tensor work = at::ones({512, 512}, options);
    for (int i = 0; i < 20; ++i) work = work.matmul(work).clamp_max(1);
    const at::Tensor filled = at::full({rows, 4096}, static_cast<double>(host.index), options);
    return {.index = host.index, .fields = {filled + 0 * work.sum()}, .rows = rows};
  }
};

void expect_unpoisoned(int data, int model, FeedOptions options) {
  SlowBatches made;
  options.end_batch = 1000;
  options.capacity = 4;
  options.poison = true;
  Feed feed(made, gpu(data), {&gpu(model)}, options);
  DeviceScope scope(gpu(model));
  at::Tensor wrong = at::zeros({}, scope.options().dtype(at::kLong));
  int64_t seen = 0;
  while (const auto batch = feed.next(0)) {
    wrong += (*batch)->fields[0].ne(static_cast<double>((*batch)->index)).sum();
    ++seen;
  }
  EXPECT_EQ(seen, 1000);
  EXPECT_EQ(wrong.item<int64_t>(), 0) << "values that are not the batch's own";
}

// A GPT of XTTS v2's size on what the feed gives: text ids as bytes, filled up.
class StandIn {
 public:
  StandIn(LogicalDevice& device, int64_t rows) : rows_(rows), device_(device) {
    DeviceScope scope(device);
    model_ = ByteGpt::make({30, 1024, 16, context}, 1);
  }
  void step(const Batch& batch) {
    DeviceScope scope(device_);
    const at::Tensor ids = batch.fields[speech_tokens].clamp(0, 255);
    const at::Tensor tokens =
        at::constant_pad_nd(ids, {0, context - ids.size(1), 0, rows_ - ids.size(0)});
    model_.loss(tokens, tokens).backward();
    model_.visit([](const std::string&, at::Tensor& tensor) { tensor.mutable_grad().reset(); });
  }

 private:
  static constexpr int64_t context = 632;
  int64_t rows_;
  LogicalDevice& device_;
  ByteGpt model_;
};

struct Measured {
  double step = 0;  // seconds
  double wait_share = 0;
  uint64_t late = 0;
};

Measured live(SpeechFeed& speech, LogicalDevice& data, LogicalDevice& model, StandIn& net,
              FeedOptions options, int64_t steps) {
  constexpr int64_t warm_up = 5;
  options.end_batch = steps + warm_up;
  Feed feed(speech.batches, data, {&model}, options);
  DeviceScope scope(model);
  feed.wait_until_full(std::chrono::seconds(20));
  Clock::time_point start{};
  double waited = 0;
  uint64_t late = 0;
  for (int64_t i = 0; i < steps + warm_up; ++i) {
    if (i == warm_up) {
      at::cuda::device_synchronize();
      start = Clock::now();
      waited = 0;
      late = feed.counters(0).late;
    }
    const auto asked = Clock::now();
    const auto batch = feed.next(0);
    waited += seconds_since(asked);
    net.step(**batch);
  }
  at::cuda::device_synchronize();
  const double all = seconds_since(start);
  return {all / static_cast<double>(steps), waited / all, feed.counters(0).late - late};
}

double replay(SpeechFeed& speech, LogicalDevice& model, StandIn& net, int64_t steps) {
  FeedOptions options{.end_batch = 1};
  Feed feed(speech.batches, model, {&model}, options);
  DeviceScope scope(model);
  const auto batch = feed.next(0);
  Clock::time_point start{};
  for (int64_t i = 0; i < steps + 5; ++i) {
    if (i == 5) {
      at::cuda::device_synchronize();
      start = Clock::now();
    }
    net.step(**batch);
  }
  at::cuda::device_synchronize();
  return seconds_since(start) / static_cast<double>(steps);
}

void measure(bool dual) {
  configure_devices(split(2));
  at::globalContext().setAllowTF32CuBLAS(true);
  const SpeechFolder folder(400, {22050, 24000});
  DataConfig config;
  config.num_workers = 12;
  SpeechFeed speech(folder.index, config, 1, "");
  LogicalDevice& data = gpu(dual ? 0 : 1);
  StandIn net(gpu(1), 16);
  constexpr int64_t steps = 40;
  const double alone = replay(speech, gpu(1), net, steps);
  const Measured fed = live(speech, data, gpu(1), net, feed_options(config), steps);
  printf("%s: replay %.2f ms a step, fed %.2f ms (%+.2f %%), waiting %.3f %%, %d late\n",
         dual ? "dual" : "side streams", 1e3 * alone, 1e3 * fed.step, 100 * (fed.step / alone - 1),
         100 * fed.wait_share, static_cast<int>(fed.late));
  EXPECT_LE(fed.wait_share, 0.01);
  EXPECT_LE(fed.step, 1.02 * alone);
}

}  // namespace

TEST(FeedOnGpu, ReleasedBuffersAreNeverReadAgain) {
  IN_CHILD({
    configure_devices(split(2));
    expect_unpoisoned(0, 1, {});
    expect_unpoisoned(0, 1, {.force_staging = true});
    expect_unpoisoned(0, 1, {.prefetch_to_device = false});
    expect_unpoisoned(0, 1, {.overlap = false});
    expect_unpoisoned(1, 1, {});
    expect_unpoisoned(1, 1, {.prefetch_to_device = false});
  });
}

TEST(FeedOnGpu, TrainingDoesNotWaitOnASplitDevice) {
  IN_CHILD({ measure(true); });
}
TEST(FeedOnGpu, TrainingDoesNotWaitOnSideStreams) {
  IN_CHILD({ measure(false); });
}

}  // namespace tandem::tests
