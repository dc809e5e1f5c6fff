// CUDA streams, and what a CUDA device needs once when it is first used.
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "tandem/error.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/Context.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <mutex>

#include "device/cuda_owner.h"

namespace tandem {
namespace {

class CudaEventState final : public EventState {
 public:
  explicit CudaEventState(unsigned flags) : event(flags) {}
  bool done() const override { return event.query(); }
  void synchronize() override { event.synchronize(); }
  double seconds_since(const EventState& earlier) const override {
    constexpr double millisecond = 1e-3;
    return dynamic_cast<const CudaEventState&>(earlier).event.elapsed_time(event) * millisecond;
  }
  at::cuda::CUDAEvent event;
};

class CudaStream final : public Stream {
 public:
  CudaStream(LogicalDevice& device, c10::cuda::CUDAStream stream)
      : device_(device), stream_(stream) {}

  void run(std::function<void()> work) override {
    DeviceScope scope(device_);
    c10::cuda::CUDAStreamGuard guard(stream_);
    work();
  }
  Event record() override { return record(cudaEventDisableTiming); }
  Event record_time() override { return record(cudaEventDefault); }
  void wait(const Event& event) override {
    if (auto* ours = dynamic_cast<CudaEventState*>(event.state())) {
      ours->event.block(stream_);
    } else {
      event.synchronize();
    }
  }
  void synchronize() override { stream_.synchronize(); }
  c10::cuda::CUDAStream raw() const { return stream_; }

 private:
  Event record(unsigned flags) {
    auto state = std::make_shared<CudaEventState>(flags);
    state->event.record(stream_);
    return Event(state);
  }

  LogicalDevice& device_;
  c10::cuda::CUDAStream stream_;
};

// A limit on a whole GPU binds LibTorch's cache as well, not only what tensors hold of it.
void limit_cache(const LogicalDevice& device) {
  const auto& info = device.info();
  if (!info.hard_limit || info.memory_limit == 0) return;
  const auto total = c10::cuda::CUDACachingAllocator::get()->getMemoryInfo(info.cuda_index).second;
  const double share = static_cast<double>(info.memory_limit) / static_cast<double>(total);
  if (shares_cuda_device(info.cuda_index)) return;
  c10::cuda::CUDACachingAllocator::setMemoryFraction(std::min(1.0, share), info.cuda_index);
}

// cuDNN's attention copies its scalars from host memory that is gone when a captured step is
// replayed (github.com/pytorch/pytorch/issues/169849): non-finite gradients, illegal accesses. The
// other kinds of attention have no such copies.
void leave_cudnn_attention_out() {
  static std::once_flag once;
  std::call_once(once, [] { at::globalContext().setSDPUseCuDNN(false); });
}

}  // namespace

std::unique_ptr<Stream> make_cuda_stream(LogicalDevice& device) {
  leave_cudnn_attention_out();
  const auto index = static_cast<c10::DeviceIndex>(device.info().cuda_index);
  c10::cuda::CUDAGuard guard(index);
  c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count());
  limit_cache(device);
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(/*high_priority=*/false, index);
  remember_stream_owner(stream, device);
  return std::make_unique<CudaStream>(device, stream);
}

c10::cuda::CUDAStream raw_cuda_stream(Stream& stream) {
  return dynamic_cast<CudaStream&>(stream).raw();
}

}  // namespace tandem

#else
namespace tandem {
std::unique_ptr<Stream> make_cuda_stream(LogicalDevice&) {
  throw Error(ErrorKind::device, "this build of Tandem has no CUDA")
      .hint("build it where nvcc is installed, or use --simulate-gpus");
}
}  // namespace tandem
#endif
