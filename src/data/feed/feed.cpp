#include "data/feed/feed.h"

#include <algorithm>

#include "data/feed/batch_rows.h"
#include "data/order/batch_order.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/peer_access.h"
#include "tandem/config.h"

namespace tandem {
namespace {

constexpr size_t model_ring_depth = 3;  // train n, move n + 1, prepare n + 2
constexpr size_t deepest_model_ring = 8;

LoaderOptions loader_options(const FeedOptions& options, bool pinned) {
  const auto workers = static_cast<size_t>(std::max(1, options.workers));
  const size_t all = std::max<size_t>(2, workers * options.prefetch_factor);
  const size_t ahead = std::max<size_t>(2, options.prefetch_factor);
  return {.first_batch = options.first_batch,
          .end_batch = options.end_batch,
          .workers = static_cast<int>(workers),
          .ahead = ahead,
          .most_ahead = options.adaptive_depth ? all : ahead,
          .pinned = pinned};
}

}  // namespace

FeedOptions feed_options(const DataConfig& config) {
  return {.capacity = static_cast<size_t>(config.buffer_size),
          .workers = static_cast<int>(config.num_workers),
          .prefetch_factor = static_cast<size_t>(config.prefetch_factor),
          .prefetch_to_device = config.prefetch_to_gpu,
          .adaptive_depth = config.enhanced_gpu_prefetch,
          .overlap = config.optimize_cpu_gpu_overlap,
          .pin_memory = config.pin_memory};
}

Feed::Feed(BatchMaker& maker, LogicalDevice& data_device, std::vector<LogicalDevice*> models,
           const FeedOptions& options)
    : maker_(maker),
      data_device_(data_device),
      options_(options),
      largest_(maker.largest_fields()) {
  // One slot being written, and one a model being copied from, beside those that wait.
  ring_ = std::make_unique<BatchRing>(options.capacity + 1 + models.size());
  for (LogicalDevice* model : models) {
    auto lane = std::make_unique<Lane>();
    lane->device = model;
    lane->prepared = std::make_unique<BoundedQueue<RingSlot*>>(options.capacity);
    if (!options.prefetch_to_device || (!options.overlap && model != &data_device)) {
      lane->way = Way::on_demand;
    } else if (model != &data_device) {
      lane->way = Way::ahead;
    }
    lane->staged = options.force_staging || !has_peer_access(data_device, *model);
    lane->moved = std::make_unique<BoundedQueue<RingSlot*>>(deepest_model_ring);
    lane->ring = std::make_unique<BatchRing>(lane->way == Way::on_demand ? 1 : model_ring_depth);
    lanes_.push_back(std::move(lane));
  }
  const bool pinned = options.pin_memory && data_device.kind() == DeviceKind::cuda;
  loader_ = std::make_unique<HostLoader>(maker, loader_options(options, pinned));
  preparation_ = std::thread([this] { prepare_all(); });
  for (size_t rank = 0; rank < lanes_.size(); ++rank) {
    if (lanes_[rank]->way != Way::ahead) continue;
    lanes_[rank]->thread = std::thread([this, rank] { move_all(static_cast<int>(rank)); });
  }
}

void Feed::stop() {
  loader_->stop();
  ring_->stop();
  for (auto& lane : lanes_) {
    lane->prepared->close();
    lane->moved->close();
    lane->ring->stop();
  }
}

Feed::~Feed() {
  stop();
  preparation_.join();
  for (auto& lane : lanes_) {
    if (lane->thread.joinable()) lane->thread.join();
  }
  // Work that is still queued reads the rings; the loader and the rings wait for it as they go.
  lanes_.clear();
  ring_.reset();
}

void Feed::fail(std::exception_ptr failure) {
  for (auto& lane : lanes_) {
    lane->prepared->fail(failure);
    lane->moved->fail(failure);
    lane->ring->stop();
  }
  ring_->stop();
}

Batch Feed::part(const Batch& whole, int rank) const {
  const int64_t rows = whole.fields.empty() ? 0 : whole.fields.front().size(0);
  const Part mine = part_of(rows, static_cast<int>(lanes_.size()), rank);
  Batch batch = rows_of(whole, mine.first, mine.count);
  batch.whole_rows = whole.rows;
  return batch;
}

std::optional<BatchLease> Feed::next(int rank) {
  Lane& lane = this->lane(rank);
  LogicalDevice& device = *lane.device;
  BoundedQueue<RingSlot*>& queue = lane.way == Way::ahead ? *lane.moved : *lane.prepared;
  // The copies fell behind although batches were there: let them run further ahead.
  if (lane.way == Way::ahead && options_.adaptive_depth && queue.size() == 0 &&
      lane.prepared->size() > 0) {
    lane.ring->grow(deepest_model_ring);
  }
  const std::optional<RingSlot*> found = queue.get();
  if (!found) return std::nullopt;
  RingSlot* slot = *found;
  if (!slot->ready.done()) ++lane.late;
  if (lane.way == Way::on_demand) slot = move_one(rank, slot, device.compute_stream());
  if (!slot) return std::nullopt;
  if (device.kind() == DeviceKind::cuda) {
    device.compute_stream().wait(slot->ready);
  } else {
    slot->ready.synchronize();
  }
  Batch batch = lane.way == Way::direct ? part(slot->batch, rank) : slot->batch;
  return BatchLease(*this, rank, slot, std::move(batch));
}

BatchLease::~BatchLease() {
  if (feed_) feed_->give_back(rank_, slot_);
}

size_t Feed::wait_until_full(std::chrono::duration<double> limit) {
  const auto deadline = Clock::now() + limit;
  size_t ready = options_.capacity;
  for (auto& lane : lanes_) {
    const std::chrono::duration<double> left = deadline - Clock::now();
    ready = std::min(
        ready, lane->prepared->wait_until_full(std::max(left, std::chrono::duration<double>(0))));
  }
  return ready;
}

FeedCounters Feed::counters(int rank) const {
  const Lane& lane = *lanes_[static_cast<size_t>(rank)];
  return {.loaded = loader_->counters(),
          .prepared = lane.prepared->counters(),
          .moved = lane.way == Way::ahead ? lane.moved->counters() : lane.prepared->counters(),
          .late = lane.late,
          .depth = lane.way == Way::direct ? ring_->depth() : lane.ring->depth()};
}

}  // namespace tandem
