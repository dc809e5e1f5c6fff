// Sound of finished batches, made on a stream of its own while the next batch is decoded, and
// handed over clip by clip from a thread of its own.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "generate/music_engine.h"
#include "models/musicgen/encodec.h"
#include "models/musicgen/musicgen_config.h"

namespace tandem {

class CudaCodec;
class MusicObserver;

class CudaMusicSound {
 public:
  // The codec is copied to the device. `decoder`: its channels and codebooks. `pinned`: sound comes
  // to the host through page-locked memory.
  CudaMusicSound(const Encodec& codec, const MusicDecoderSize& decoder, LogicalDevice& device,
                 bool pinned);
  ~CudaMusicSound();  // waits for what is open

  // Takes the memory for clips of that many frames, if what is there is too small; waits for open
  // sound first then. `release` gives it back.
  void reserve(int64_t frames, int64_t clips);
  void release();

  // codes [B, K, frames] int64 on the CPU. Waits until the batch before is handed over.
  void put(at::Tensor codes, MusicEngine::Done done, MusicObserver* observer = nullptr);
  void wait();             // until everything is handed over
  void rethrow_failure();  // what `Done` threw, once
  double seconds() const;  // the device's own time
  uint64_t weight_bytes() const;

 private:
  struct Batch {
    at::Tensor codes;
    MusicEngine::Done done;
    MusicObserver* observer = nullptr;
  };
  void serve();
  void make(const Batch& batch);
  at::Tensor decode(const at::Tensor& codes);

  MusicDecoderSize decoder_;
  Encodec codec_;
  LogicalDevice& device_;
  const bool pinned_;
  std::unique_ptr<CudaCodec> fast_;  // where its kernels fit the codec
  int64_t frames_ = 0, clips_ = 0;
  at::Tensor staging_;  // on the host, for `clips_` clips

  mutable std::mutex mutex_;  // all below
  std::condition_variable changed_;
  std::unique_ptr<Batch> waiting_;
  bool busy_ = false, closing_ = false;
  std::exception_ptr failure_;
  double seconds_ = 0;
  std::thread thread_;
};

}  // namespace tandem
#endif
