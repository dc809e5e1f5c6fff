// Sums the gradients of one phase over the replicas, bucket by bucket, while the backward pass
// still computes those of the layers below. Buckets go from the last tensor to the first, the way
// gradients become final, and always in that order, so that every replica meets the same
// collective.
#pragma once

#include <memory>
#include <vector>

#include "device/communicator.h"
#include "train/parameter_store.h"

namespace tandem {

class GradientReducer {
 public:
  // Both must outlive it.
  GradientReducer(const ParameterStore& store, Communicator& group, size_t bucket_bytes);
  ~GradientReducer();

  // From here on a gradient is final once autograd has added to it.
  void watch();
  // Gradients of all tensors from `first` on are final.
  void final_from(size_t first);
  // The rest is final too; returns when all sums are usable.
  void finish();
  // The pass broke off. Where nothing is on its way it may be done again; else what others have
  // been sent cannot be taken back: the rest is sent as numbers that are none, so that all replicas
  // leave the step out. True: so it was.
  bool break_off();

  int64_t early() const { return early_; }  // buckets on their way before finish was called
  size_t buckets() const { return buckets_.size(); }

 private:
  struct Hook;
  struct Bucket {
    size_t first, end;
    size_t waiting = 0;  // tensors not yet final
    std::vector<std::shared_ptr<Work>> works;
  };
  void note_final(size_t tensor);
  void launch(Bucket& bucket);

  const ParameterStore& store_;
  Communicator& group_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;
  size_t next_ = 0;
  bool watching_ = false;
  int64_t early_ = 0;
};

}  // namespace tandem
