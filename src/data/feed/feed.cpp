#include "data/feed/feed.h"

#include <algorithm>

#include "device/device_scope.h"
#include "device/logical_device.h"

namespace tandem {

Part part_of(int64_t batch_size, int replicas, int rank) {
  const int64_t share = batch_size / replicas;
  const int64_t first = share * rank;
  return {first, rank + 1 == replicas ? batch_size - first : share};
}

Feed::Feed(ByteCorpus& corpus, LogicalDevice& data_device, const FeedOptions& options)
    : corpus_(corpus), device_(data_device), options_(options) {
  for (int i = 0; i < options.replicas; ++i) {
    queues_.push_back(std::make_unique<BoundedQueue<Batch>>(options.capacity));
  }
  thread_ = std::thread([this] { prepare_all(); });
}

Feed::~Feed() {
  for (auto& queue : queues_) queue->close();
  thread_.join();
}

void Feed::prepare_all() {
  try {
    DeviceScope scope(device_);
    bool open = true;
    for (int64_t index = options_.first_batch; open && index < options_.end_batch; ++index) {
      for (int rank = 0; open && rank < options_.replicas; ++rank) {
        const Part part = part_of(options_.batch_size, options_.replicas, rank);
        Batch batch = corpus_.train_batch(options_.seed, index, part.first, part.count);
        batch.whole_size = options_.batch_size;
        // On CUDA the batch must be there before another stream reads it.
        if (device_.kind() == DeviceKind::cuda) device_.compute_stream().synchronize();
        open = queues_[static_cast<size_t>(rank)]->put(std::move(batch));
      }
    }
    for (auto& queue : queues_) queue->close();
  } catch (...) {
    for (auto& queue : queues_) queue->fail(std::current_exception());
  }
}

size_t Feed::wait_until_full(std::chrono::duration<double> limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  size_t ready = options_.capacity;
  for (auto& queue : queues_) {
    const std::chrono::duration<double> left = deadline - std::chrono::steady_clock::now();
    ready =
        std::min(ready, queue->wait_until_full(std::max(left, std::chrono::duration<double>(0))));
  }
  return ready;
}

}  // namespace tandem
