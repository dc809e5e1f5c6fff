// Buffers for batches on one device, used in turn. A slot is written by one stream and read by
// others; events guard it both ways: readers start after `ready`, the next writer after all
// `released`. Its memory is taken once and stays where it is, so that a captured step may read it.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "data/feed/batch.h"
#include "device/stream.h"

namespace tandem {

struct RingSlot {
  Batch batch;                      // its fields are views of `buffers`
  std::vector<at::Tensor> buffers;  // flat, one a field, as large as the largest shape
  std::vector<at::Tensor> staging;  // page-locked, where a copy goes by way of the host
  Event ready;
  std::vector<Event> released;  // of the readers since the last writing
  int readers = 0;              // that have not released it yet
};

// A view of `slot`'s buffer `field` with the shape and type of `like` but for its first size,
// `rows`. Takes the buffer, of `least` numbers or more, where there is none that is large enough;
// call it where the writer's stream is current.
at::Tensor slot_view(std::vector<at::Tensor>& buffers, size_t field, const at::Tensor& like,
                     int64_t rows, const at::TensorOptions& where, int64_t least = 0);

// Fills a slot with what nobody wants to read: NaN, or -1 in fields of integers.
void poison(RingSlot& slot);

class BatchRing {
 public:
  explicit BatchRing(size_t depth) : depth_(depth) {}
  ~BatchRing();  // waits for readers

  // A free slot; waits for one. nullptr once stopped.
  RingSlot* acquire();
  // One reader less; when it was the last, `last` runs (before the slot is free) and true is
  // returned.
  template <class Last>
  void release(RingSlot* slot, Event read, const Last& last) {
    std::lock_guard lock(mutex_);
    slot->released.push_back(std::move(read));
    if (--slot->readers > 0) return;
    last();
    free_.push_back(slot);
    changed_.notify_all();
  }
  void grow(size_t most);  // one slot more, up to `most`
  void stop();
  size_t depth() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t depth_;
  bool stopped_ = false;
  std::vector<std::unique_ptr<RingSlot>> slots_;
  std::vector<RingSlot*> free_;
};

}  // namespace tandem
