// A text as training data: windows of its bytes. Which window is which sample of which batch is
// arithmetic in (seed, batch, sample), so any batch can be made at any time, on any device, in any
// order.
#pragma once

#include <string>

#include "data/feed/batch_maker.h"

namespace tandem {

// Fields of its batches: [B, T] int64 each; a target is the byte that follows its token.
enum ByteField : size_t { byte_tokens, byte_targets };

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

// The corpus as the feed asks for it: nothing to do on the host, whole batches on the data device.
class ByteBatches final : public BatchMaker {
 public:
  ByteBatches(ByteCorpus& corpus, uint64_t seed, int64_t batch_size)
      : corpus_(corpus), seed_(seed), batch_size_(batch_size) {}
  std::unique_ptr<HostBatch> make_host_batch(bool) override {
    return std::make_unique<HostBatch>();
  }
  void plan(HostBatch& host, int64_t index) override { host.index = index; }
  void run_task(HostBatch&, int) override {}
  Batch prepare(const HostBatch& host) override {
    return corpus_.train_batch(seed_, host.index, 0, batch_size_);
  }

 private:
  ByteCorpus& corpus_;
  uint64_t seed_;
  int64_t batch_size_;
};

// Its validation windows in text order, batch by batch; the last batch may have empty rows.
class ByteValidation final : public BatchMaker {
 public:
  ByteValidation(const ByteCorpus& corpus, int64_t batch_size)
      : corpus_(corpus), batch_size_(batch_size) {}
  std::unique_ptr<HostBatch> make_host_batch(bool) override {
    return std::make_unique<HostBatch>();
  }
  void plan(HostBatch& host, int64_t index) override { host.index = index; }
  void run_task(HostBatch&, int) override {}
  Batch prepare(const HostBatch& host) override;

 private:
  const ByteCorpus& corpus_;
  int64_t batch_size_;
};

}  // namespace tandem
