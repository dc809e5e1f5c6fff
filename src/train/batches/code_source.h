// Where the codes of a batch's clips come from, the cheapest first: `INDEX.codes` on the disk
// (`tandem prepare --cache codes`, when the same DVAE made it and it holds every clip), what this
// run computed before, or the DVAE on the data device.
#pragma once

#include <ATen/core/TensorBody.h>

#include <optional>

#include "data/corpus/clip_cache.h"
#include "data/feed/speech_feed.h"
#include "models/xtts/dvae_encoder.h"
#include "train/batches/clip_memo.h"

namespace tandem {

class LogicalDevice;

class CodeSource {
 public:
  // `stride`: samples a code. `like_coqui`: codes of clips filled up with silence to the longest of
  // their batch; nothing is kept then, as they depend on their company. Throws Error(config) when
  // the DVAE's codes are of another length.
  CodeSource(const SpeechFeed& speech, const DvaeEncoder& dvae, int64_t stride, bool like_coqui);

  bool cached() const { return cache_.has_value(); }  // on the disk
  // Codes a row of this bucket's batches has room for.
  int64_t width_of(size_t bucket) const;
  int64_t codes_of(int64_t samples) const { return (samples + stride_ - 1) / stride_; }

  // From the disk, by any thread: a clip's codes, `most` of them at most. Damaged ones are
  // computed.
  void read(int64_t clip, int64_t* out, int64_t most) const;
  // On the device of the open scope: [B, width_of(bucket)] int64; beyond a clip's codes anything.
  at::Tensor encode(const SpeechBatch& speech);
  int64_t encoded() const { return encoded_; }  // batches that went through the DVAE

 private:
  void open_cache();
  bool may_keep() const;
  at::Tensor run_encoder(const SpeechBatch& speech);

  const SpeechFeed& speech_;
  const DvaeEncoder& source_;
  const int64_t stride_;
  const bool like_coqui_;
  std::optional<ClipCache> cache_;
  uint64_t recipe_ = 0;
  ClipMemo memo_;
  std::optional<DvaeEncoder> dvae_;  // on `device_`
  const LogicalDevice* device_ = nullptr;
  int64_t encoded_ = 0;
};

}  // namespace tandem
