#include "generate/cuda_caption_reader.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>

#include "device/capture_gate.h"
#include "device/capture_work.h"
#include "device/logical_device.h"
#include "nn/model_parts.h"

namespace tandem {

struct CudaCaptionReader::Captured {
  at::Tensor ids, mask, states;
  std::unique_ptr<at::cuda::CUDAGraph> graph;
};

struct CudaCaptionReader::Pool {
  c10::cuda::MempoolId_t id = at::cuda::graph_pool_handle();
};

CudaCaptionReader::CudaCaptionReader(const T5Encoder& reader, LogicalDevice& device, bool captures)
    : reader_(reader), device_(device), captures_(captures) {
  move_to(reader_, "", device.torch_device());
}
CudaCaptionReader::~CudaCaptionReader() = default;

std::unique_ptr<CudaCaptionReader::Captured> CudaCaptionReader::capture(int64_t length) const {
  auto made = std::make_unique<Captured>();
  made->ids = at::zeros({1, length}, at::TensorOptions(device_.torch_device()).dtype(at::kLong));
  made->mask = at::ones_like(made->ids);
  // Once as it is: libraries make their plans and take their memory outside of a capture.
  reader_(made->ids, made->mask);
  const auto alone = capturing_on(device_);
  made->graph = capture_work(pool_->id, [&] { made->states = reader_(made->ids, made->mask); });
  return made;
}

at::Tensor CudaCaptionReader::operator()(const std::vector<int64_t>& ids) {
  const at::NoGradGuard no_grad;
  const auto length = static_cast<int64_t>(ids.size());
  if (length == 0)
    return at::empty({0, reader_.size.width}, at::TensorOptions(device_.torch_device()));
  const at::Tensor given = at::tensor(ids, at::kLong).view({1, length});
  if (!captures_) return reader_(given, at::ones_like(given)).squeeze(0);
  if (!pool_) pool_ = std::make_unique<Pool>();
  std::unique_ptr<Captured>& captured = of_length_[length];
  if (!captured) captured = capture(length);
  captured->ids.copy_(given.pin_memory(), /*non_blocking=*/true);  // nobody waits for it
  captured->graph->replay();
  return captured->states.squeeze(0);
}

void CudaCaptionReader::forget() {
  of_length_.clear();
  pool_.reset();
}

uint64_t CudaCaptionReader::weight_bytes() const { return bytes_of(reader_); }

}  // namespace tandem
#endif
