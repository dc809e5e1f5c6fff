// EnCodec's decoder as kernels of ours on the current CUDA device: halves in the products, float32
// sums and LSTM state, about 65 dB to the float32 reference (Encodec::decode, which remains the
// exact way). What a clip sounds like does not depend, to the last bit, on how many clips are
// decoded at once or on its place among them.
//
// Clips go through in groups of up to 32. The LSTM of a group takes width / 16 multiprocessors (64
// of an H200's 132) for itself, the rest of the decoder as many as are free. The convolutions work
// on a few thousand frames at a time, so buffers stay near 1.3 GB, the sound itself not counted.
//
// One thread uses it. Work that was queued must not outlive it: the destructor waits for it.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <memory>

#include "models/musicgen/encodec.h"

struct CUstream_st;  // cudaStream_t points to one

namespace tandem {

class CudaCodec {
 public:
  // Whether a codec of that size can be decoded here: one channel, not causal, reflected ends, one
  // residual block of two layers a stage, two layers of LSTM, 256, 512 or 1024 wide.
  static bool fits(const EncodecSize& size);
  // What it takes on the device, weights included.
  static int64_t bytes(const EncodecSize& size, int64_t frames, int64_t clips);

  // For at most `clips` clips of `frames` frames at once. Takes its buffers and copies the weights;
  // `codec` may live anywhere and is not needed afterwards.
  CudaCodec(const Encodec& codec, int64_t frames, int64_t clips);
  ~CudaCodec();
  CudaCodec(const CudaCodec&) = delete;
  CudaCodec& operator=(const CudaCodec&) = delete;

  // codes [B, K, F] int32 or int64 on the device, any strides -> sound [B, F * hop] float32, in a
  // buffer that the next call overwrites. Queued on `stream`; nothing is waited for or allocated.
  const at::Tensor& decode(const at::Tensor& codes, CUstream_st* stream);

 private:
  class Layers;
  std::unique_ptr<Layers> layers_;
};

}  // namespace tandem
