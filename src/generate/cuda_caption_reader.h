// T5 on a GPU: one launch a caption instead of hundreds. Captions of one length share a captured
// graph; the first of a length captures it. What a caption gives does not depend on those before.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "models/musicgen/t5_encoder.h"

namespace tandem {

class LogicalDevice;

class CudaCaptionReader {
 public:
  // `reader` is copied to the device. Under its scope and on one stream, here and below. Without
  // `captures` everything is launched one by one.
  CudaCaptionReader(const T5Encoder& reader, LogicalDevice& device, bool captures);
  ~CudaCaptionReader();

  // [L, W] float32 on the device, there until the next caption of that length is read.
  at::Tensor operator()(const std::vector<int64_t>& ids);
  void forget();  // the graphs and their memory

  uint64_t weight_bytes() const;

 private:
  struct Captured;
  std::unique_ptr<Captured> capture(int64_t length) const;

  T5Encoder reader_;
  LogicalDevice& device_;
  const bool captures_;
  struct Pool;
  std::unique_ptr<Pool> pool_;  // one for all graphs, which never run at the same time
  std::map<int64_t, std::unique_ptr<Captured>> of_length_;
};

}  // namespace tandem
#endif
