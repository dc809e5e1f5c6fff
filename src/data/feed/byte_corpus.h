// A text as training data: windows of its bytes. Which window is which sample of which batch is
// arithmetic in (seed, batch, sample), so any batch can be made at any time, on any device, in any
// order.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>

namespace tandem {

// One step's work for one replica.
struct Batch {
  int64_t index = 0;       // position in the order of batches
  at::Tensor tokens;       // [B, T] int64
  at::Tensor targets;      // [B, T] int64, the byte that follows each token
  int64_t whole_size = 0;  // sequences of the whole batch, over all replicas
};

class ByteCorpus {
 public:
  // The last tenth of the text is held out for validation. Throws Error(io) or Error(data).
  ByteCorpus(const std::string& path, int64_t context);

  int64_t train_windows() const { return train_bytes_ / context_; }

  // Makes samples [first, first + count) of batch `index` on the device of the open DeviceScope;
  // the text is brought there on the first call.
  Batch train_batch(uint64_t seed, int64_t index, int64_t first, int64_t count);
  // Validation windows [first, first + count), in text order, wrapping around. On the host; any
  // thread.
  Batch validation_batch(int64_t first, int64_t count) const;
  int64_t validation_windows() const;

 private:
  Batch windows(const at::Tensor& text, const std::vector<int64_t>& starts) const;
  int64_t context_, train_bytes_;
  at::Tensor text_;         // [bytes] uint8, on the host
  at::Tensor device_text_;  // the same on the data device
};

}  // namespace tandem
