#include "generate/cuda_music_sound.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <utility>

#include "device/cuda_owner.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "generate/music_observer.h"
#include "models/musicgen/cuda_codec.h"
#include "models/musicgen/music_sound.h"
#include "nn/model_parts.h"

namespace tandem {
namespace {

constexpr int64_t clips_at_once = 32;

}  // namespace

CudaMusicSound::CudaMusicSound(const Encodec& codec, const MusicDecoderSize& decoder,
                               LogicalDevice& device, bool pinned)
    : decoder_(decoder), codec_(codec), device_(device), pinned_(pinned) {
  move_to(codec_, "", device.torch_device());
  thread_ = std::thread([this] { serve(); });
}

CudaMusicSound::~CudaMusicSound() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CudaMusicSound::release() {
  wait();
  fast_.reset();
  frames_ = clips_ = 0;
}

void CudaMusicSound::reserve(int64_t frames, int64_t clips) {
  const int64_t at_once = std::min(clips, clips_at_once);
  if (frames <= frames_ && at_once <= clips_) return;
  release();
  staging_ = at::empty({at_once * decoder_.channels * frames * codec_.size.hop()},
                       at::TensorOptions().dtype(at::kFloat).pinned_memory(pinned_));
  if (CudaCodec::fits(codec_.size)) fast_ = std::make_unique<CudaCodec>(codec_, frames, at_once);
  frames_ = frames;
  clips_ = at_once;
}

void CudaMusicSound::put(at::Tensor codes, MusicEngine::Done done, MusicObserver* observer) {
  wait();
  std::lock_guard lock(mutex_);
  waiting_ = std::make_unique<Batch>(Batch{std::move(codes), std::move(done), observer});
  if (observer) observer->begin(MusicPart::turn, device_.preparation_stream());
  changed_.notify_all();
}

void CudaMusicSound::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_ && !waiting_; });
}

void CudaMusicSound::rethrow_failure() {
  std::unique_lock lock(mutex_);
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  lock.unlock();
  if (failure) std::rethrow_exception(failure);
}

double CudaMusicSound::seconds() const {
  std::lock_guard lock(mutex_);
  return seconds_;
}

uint64_t CudaMusicSound::weight_bytes() const { return bytes_of(codec_); }

// codes [B, K, F] on the device -> sound [B, channels, samples] there, on the current stream.
at::Tensor CudaMusicSound::decode(const at::Tensor& codes) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  if (!fast_) {  // one clip at a time: LibTorch chooses other kernels for other shapes
    std::vector<at::Tensor> sounds;
    for (int64_t i = 0; i < codes.size(0); ++i)
      sounds.push_back(sound_of_codes(codec_, decoder_, codes.narrow(0, i, 1)));
    return at::cat(sounds);
  }
  if (decoder_.channels == 1) return fast_->decode(codes, stream).unsqueeze(1);
  std::vector<at::Tensor> sides;
  for (int64_t side = 0; side < decoder_.channels; ++side)
    sides.push_back(fast_->decode(codes.slice(1, side, {}, decoder_.channels), stream).clone());
  return at::stack(sides, 1);
}

void CudaMusicSound::make(const Batch& batch) {
  at::NoGradGuard no_gradients;
  const int64_t clips = batch.codes.size(0);
  const int64_t sound_size = decoder_.channels * batch.codes.size(2) * codec_.size.hop();
  Stream& queue = device_.preparation_stream();
  if (batch.observer) batch.observer->end(queue);
  for (int64_t first = 0; first < clips; first += clips_) {
    const int64_t count = std::min(clips_, clips - first);
    const at::Tensor staged =
        staging_.narrow(0, 0, count * sound_size).view({count, decoder_.channels, -1});
    {
      DeviceScope scope(device_);
      const auto stream = raw_cuda_stream(queue);
      c10::cuda::CUDAStreamGuard guard(stream);
      at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
      at::Tensor sound;
      {
        const MusicMark mark(batch.observer, MusicPart::sound, queue);
        const at::Tensor codes = batch.codes.narrow(0, first, count).to(device_.torch_device());
        begin.record(stream);
        sound = decode(codes);
        end.record(stream);
      }
      const MusicMark mark(batch.observer, MusicPart::copy, queue);
      staged.copy_(sound, /*non_blocking=*/true);
      stream.synchronize();
      std::lock_guard lock(mutex_);
      seconds_ += 1e-3 * begin.elapsed_time(end);
    }
    // Outside the device's scope: what is handed over is not its memory.
    const MusicMark mark(batch.observer, MusicPart::hand_over, queue);
    for (int64_t i = 0; i < count; ++i)
      batch.done(static_cast<size_t>(first + i),
                 {.sound = at::empty(staged[i].sizes(), at::kFloat).copy_(staged[i]),
                  .codes = batch.codes[first + i].clone()});
  }
  if (batch.observer) batch.observer->begin(MusicPart::turn, queue);
}

void CudaMusicSound::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || waiting_; });
    if (!waiting_) return;
    std::unique_ptr<Batch> batch = std::move(waiting_);
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      make(*batch);
    } catch (...) {
      failure = std::current_exception();
    }
    batch.reset();
    lock.lock();
    busy_ = false;
    if (failure && !failure_) failure_ = failure;
    changed_.notify_all();
  }
}

}  // namespace tandem
#endif
