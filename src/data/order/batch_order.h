// Which clips make which batch: arithmetic in (seed, epoch, batch). Every epoch holds each clip
// exactly once; the same batches come whatever the number of replicas, threads or resumptions, and
// any batch is found in the time its rows take.
//
// A bucket's last batch may have fewer clips than rows: its shape stays, the rows left are empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/order/buckets.h"

namespace tandem {

struct PlannedBatch {
  int64_t index = 0;  // over all epochs
  int64_t epoch = 0;
  size_t bucket = 0;
  std::vector<int64_t> clips;  // rows of the corpus, at most the bucket's rows
};

struct OrderOptions {
  uint64_t seed = 0;
  bool shuffle = true;  // false: buckets one after another, clips as they stand (validation)
};

class BatchOrder {
 public:
  BatchOrder(std::vector<Bucket> buckets, const OrderOptions& options);

  int64_t batches_an_epoch() const { return first_batch_.back(); }
  int64_t clips() const { return clips_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  PlannedBatch batch(int64_t index) const;

  // What stands in for the clip of `row` that could not be used: another of the same bucket, the
  // `attempt`-th choice (from 0). A function of its arguments, like the order itself.
  int64_t replacement(const PlannedBatch& batch, int64_t row, int64_t attempt) const;

 private:
  std::vector<Bucket> buckets_;
  OrderOptions options_;
  std::vector<int64_t> first_batch_;  // of each bucket in an unshuffled epoch; the total at the end
  int64_t clips_ = 0;
};

// Rows [first, first + count) of a batch that replica `rank` takes; the last takes the remainder.
struct Part {
  int64_t first, count;
};
Part part_of(int64_t rows, int replicas, int rank);

}  // namespace tandem
