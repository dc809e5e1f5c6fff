// Numbers computed once for each clip and kept on the data device from then on. A clip is always in
// the same bucket, so it is worked on in the same shape whenever that is: a run that is resumed,
// and computes it at another time, gets the same numbers.
#pragma once

#include <ATen/core/TensorBody.h>

#include <functional>
#include <vector>

#include "data/feed/speech_feed.h"

namespace tandem {

class ClipMemo {
 public:
  // `width`: numbers a clip of a bucket has. Keeps nothing when they would take more than 256 MiB.
  ClipMemo(const BatchOrder& order, int64_t clips, at::ScalarType type,
           const std::function<int64_t(size_t bucket)>& width);

  bool knows(const SpeechBatch& batch) const;  // every clip of it
  // [B, width] of the type given; of empty rows anything.
  at::Tensor get(const SpeechBatch& batch) const;
  void keep(const SpeechBatch& batch, const at::Tensor& rows);  // [B, width]
  void forget();

 private:
  at::Tensor places(const std::vector<int64_t>& clips, int64_t rows,
                    const at::Device& device) const;
  const BatchOrder& order_;
  const at::ScalarType type_;
  bool keeps_ = true;
  std::vector<int64_t> place_;      // of each clip in its bucket
  std::vector<bool> kept_;          // of each clip
  std::vector<at::Tensor> tables_;  // of each bucket: [clips, width]
};

}  // namespace tandem
