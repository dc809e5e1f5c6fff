#include "data/order/batch_order.h"

#include <algorithm>

#include "tandem/error.h"
#include "util/counted_random.h"
#include "util/permutation.h"

namespace tandem {

BatchOrder::BatchOrder(std::vector<Bucket> buckets, const OrderOptions& options)
    : buckets_(std::move(buckets)), options_(options), first_batch_{0} {
  for (const Bucket& bucket : buckets_) {
    const auto clips = static_cast<int64_t>(bucket.clips.size());
    clips_ += clips;
    first_batch_.push_back(first_batch_.back() + (clips + bucket.rows - 1) / bucket.rows);
  }
  if (clips_ == 0) {
    throw Error(ErrorKind::data, "there is no clip to make batches of")
        .hint("`tandem prepare` says what was dropped and why");
  }
}

PlannedBatch BatchOrder::batch(int64_t index) const {
  const int64_t total = batches_an_epoch();
  PlannedBatch planned{.index = index, .epoch = index / total};
  const auto epoch = static_cast<uint64_t>(planned.epoch);
  auto place = static_cast<uint64_t>(index % total);
  if (options_.shuffle) {
    const uint64_t key = counted_draw(options_.seed, "order of batches", epoch, 0);
    place = Permutation(static_cast<uint64_t>(total), key)[place];
  }
  const auto next =
      std::upper_bound(first_batch_.begin(), first_batch_.end(), static_cast<int64_t>(place));
  planned.bucket = static_cast<size_t>(next - first_batch_.begin()) - 1;
  const Bucket& bucket = buckets_[planned.bucket];
  const auto size = static_cast<uint64_t>(bucket.clips.size());
  const auto rows = static_cast<uint64_t>(bucket.rows);
  const uint64_t first = (place - static_cast<uint64_t>(first_batch_[planned.bucket])) * rows;
  const Permutation clips(size,
                          counted_draw(options_.seed, "order of clips", epoch, planned.bucket));
  for (uint64_t i = first; i < std::min(first + rows, size); ++i)
    planned.clips.push_back(bucket.clips[options_.shuffle ? clips[i] : i]);
  return planned;
}

int64_t BatchOrder::replacement(const PlannedBatch& batch, int64_t row, int64_t attempt) const {
  const std::vector<int64_t>& clips = buckets_[batch.bucket].clips;
  const uint64_t id = mix_bits(static_cast<uint64_t>(batch.index)) ^ static_cast<uint64_t>(row);
  return clips[counted_below(clips.size(), options_.seed, "replacement", id,
                             static_cast<uint64_t>(attempt))];
}

Part part_of(int64_t rows, int replicas, int rank) {
  const int64_t share = rows / replicas;
  const int64_t first = share * rank;
  return {first, rank + 1 == replicas ? rows - first : share};
}

}  // namespace tandem
