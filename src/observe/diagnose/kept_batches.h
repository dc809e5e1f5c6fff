// Batches of the feed that are kept to be replayed. Private to `measure`.
#pragma once

#include <vector>

#include "observe/diagnose/figures.h"
#include "observe/diagnose/subject.h"

namespace tandem {

// Of one rank, on its device, given again and again.
class KeptBatches {
 public:
  void add(const Batch& batch, LogicalDevice& device);
  Subject::NextBatch all() {
    return [this] { return &batches_[next_++ % batches_.size()]; };
  }
  Subject::NextBatch first() const {
    return [this] { return &batches_.front(); };
  }
  size_t size() const { return batches_.size(); }

 private:
  std::vector<Batch> batches_;
  size_t next_ = 0;
};

// Of every rank as many as there are buckets by default, so that batches of all lengths are among
// them: one batch says nothing of the others where clips are of unlike lengths. Fewer where they
// would take more than a little of the memory, or where the feed is too slow to wait for. Notes how
// long the first one took.
std::vector<KeptBatches> keep_batches(Feed& feed, const std::vector<LogicalDevice*>& models,
                                      Figures& figures);

}  // namespace tandem
