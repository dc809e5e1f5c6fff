#include "data/feed/batch_ring.h"

#include <algorithm>
#include <limits>

namespace tandem {

at::Tensor slot_view(std::vector<at::Tensor>& buffers, size_t field, const at::Tensor& like,
                     int64_t rows, const at::TensorOptions& where, int64_t least) {
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = rows;
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  if (buffers.size() <= field) buffers.resize(field + 1);
  at::Tensor& buffer = buffers[field];
  const bool fits =
      buffer.defined() && buffer.numel() >= count && buffer.scalar_type() == like.scalar_type();
  if (!fits) buffer = at::empty({std::max(count, least)}, where.dtype(like.scalar_type()));
  return buffer.narrow(0, 0, count).view(shape);
}

void poison(RingSlot& slot) {
  for (at::Tensor& buffer : slot.buffers) {
    if (buffer.is_floating_point()) {
      buffer.fill_(std::numeric_limits<double>::quiet_NaN());
    } else {
      buffer.fill_(-1);
    }
  }
}

BatchRing::~BatchRing() {
  for (const auto& slot : slots_) {
    slot->ready.synchronize();
    for (const Event& event : slot->released) event.synchronize();
  }
}

RingSlot* BatchRing::acquire() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || !free_.empty() || slots_.size() < depth_; });
  if (stopped_) return nullptr;
  if (free_.empty()) {
    slots_.push_back(std::make_unique<RingSlot>());
    return slots_.back().get();
  }
  RingSlot* slot = free_.front();  // the one released longest ago
  free_.erase(free_.begin());
  return slot;
}

void BatchRing::grow(size_t most) {
  std::lock_guard lock(mutex_);
  if (depth_ >= most) return;
  ++depth_;
  changed_.notify_all();
}

void BatchRing::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

size_t BatchRing::depth() const {
  std::lock_guard lock(mutex_);
  return depth_;
}

}  // namespace tandem
