// Which device makes which clips. Threads of the host put clips in as they are prepared, roughly in
// the captions' order; devices take batches. Clips come back when a device fails or its memory is
// too small, and are taken again, by whoever asks.
//
// Queue: a device takes a batch of its own size whenever it asks. Gather: each total batch is cut
// over the devices, and the next is cut when all of them have their codes. Towards the end the rest
// is cut evenly.
//
// All functions may be called from any thread; a device is one thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "generate/music_engine.h"
#include "generate/music_manifest.h"

namespace tandem {

struct PreparedClip {
  size_t place = 0;  // of its caption
  MusicRequest request;
  ClipEntry entry;
};
using ClipBatch = std::vector<PreparedClip>;

// A total batch over the devices: equal parts, the remainder to the last; at least one clip each.
std::vector<int64_t> device_batches(int64_t total, size_t devices);
// `count` clips over devices that take at most `limits`: equal parts and the remainder to the last,
// and what does not fit there to those before it.
std::vector<int64_t> cut_batch(int64_t count, const std::vector<int64_t>& limits);

class ClipShares {
 public:
  struct Options {
    std::vector<int64_t> limits;  // clips a batch, by device
    bool gather = false;
    int64_t ahead = 2;  // total batches prepared ahead
    int64_t total = 0;  // clips that `put` or `pass_over` will speak of
  };
  explicit ClipShares(Options options);

  // By those who prepare. `put` waits for room; false: no more is wanted.
  bool put(PreparedClip clip);
  void pass_over();  // a clip that need not or cannot be made

  // By devices. Clips of a batch have prompts of one length. Nothing: there is none for now; the
  // device should finish what it has and ask `wait_for_more`, which waits until clips come back
  // (true) or all is over (false).
  std::optional<ClipBatch> take(size_t device);
  bool wait_for_more(size_t device);
  void generated(size_t clips);  // their codes are there
  void resolve(size_t clips);    // they are handed over, or have failed
  void give_back(ClipBatch batch, bool was_generated);
  // To be taken again by the same device in smaller batches (gather), or by anyone (queue).
  void try_smaller(size_t device, ClipBatch batch, int64_t limit);
  void lose(size_t device);

  void stop();
  int64_t limit(size_t device) const;
  size_t devices_left() const;
  bool over() const;              // every clip is resolved or passed over
  double waited_seconds() const;  // devices for prepared clips

 private:
  int64_t sum_of_limits() const;
  int64_t left() const { return to_come_ + static_cast<int64_t>(waiting_.size()); }
  bool over_locked() const { return left() == 0 && out_ == 0; }
  bool window_ready(int64_t wanted) const;
  int64_t batch_wanted(size_t device);
  ClipBatch take_waiting(int64_t most);
  void cut_round();

  const bool gather_;
  const int64_t ahead_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<int64_t> limits_;
  std::vector<bool> lost_;
  std::map<size_t, PreparedClip> waiting_;  // by place
  int64_t to_come_ = 0;                     // not yet put or passed over
  int64_t out_ = 0;                         // taken, or in a share, and not resolved
  std::vector<int64_t> tail_;               // clips of the last batches, by device; empty: not yet
  std::vector<std::deque<PreparedClip>> shares_;  // gather: of the round, not yet taken
  int64_t round_left_ = 0;                        // gather: clips of the round without codes
  bool stopped_ = false;
  double waited_ = 0;
};

}  // namespace tandem
