// One copy of the model with its optimizer, on one device. Driven by one thread.
#pragma once

#include <optional>

#include "checkpoint/run_folder.h"
#include "data/feed/byte_corpus.h"
#include "models/bytes/byte_gpt.h"
#include "train/optimizer.h"

namespace tandem {

class Communicator;
class LogicalDevice;

class Replica {
 public:
  // Creates model and optimizer on `device`.
  Replica(LogicalDevice& device, const ByteGptSize& size, uint64_t seed, double learning_rate);

  // Adds the gradients of one batch; returns its loss as a share of the whole batch (so that the
  // shares of all replicas sum to the mean over the whole batch), on the device.
  at::Tensor add_gradients(const Batch& batch);

  // Sums gradients over the group, if there is one, clips and steps. Returns the gradient norm.
  at::Tensor update(Communicator* group, int64_t accumulation);

  // Mean loss over this replica's part of the validation windows, times its share of them.
  at::Tensor validate(const ByteCorpus& corpus, int64_t first, int64_t count, int64_t whole);

  at::Tensor checksum();
  NamedTensors weights();
  NamedTensors optimizer_state() const { return optimizer_->state(); }
  void load(const Checkpoint& checkpoint);
  LogicalDevice& device() const { return device_; }

 private:
  at::Tensor to_device(const at::Tensor& tensor) const;
  LogicalDevice& device_;
  ByteGpt model_;
  std::optional<AdamW> optimizer_;
};

}  // namespace tandem
