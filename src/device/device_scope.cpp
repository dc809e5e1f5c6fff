#include "device/device_scope.h"

#include "device/cuda_owner.h"
#include "device/logical_device.h"
#include "device/registry.h"

#ifdef TANDEM_WITH_CUDA
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <atomic>
#include <mutex>
#include <vector>
#endif

namespace tandem {
namespace {
thread_local LogicalDevice* t_current = nullptr;
}

#ifdef TANDEM_WITH_CUDA

struct DeviceScope::CudaGuards {
  explicit CudaGuards(c10::cuda::CUDAStream stream) : guard(stream) {}
  c10::cuda::CUDAStreamGuard guard;
};

namespace {
struct Owner {
  c10::cuda::CUDAStream stream;
  LogicalDevice* device;
};
std::mutex g_owners_mutex;
std::vector<Owner> g_owners;
std::atomic<bool> g_any_owner{false};
}  // namespace

void remember_stream_owner(c10::cuda::CUDAStream stream, LogicalDevice& device) {
  std::lock_guard lock(g_owners_mutex);
  g_owners.push_back({stream, &device});
  g_any_owner = true;
}

LogicalDevice* owner_of_current_stream() {
  if (!g_any_owner) return nullptr;  // asking CUDA for its stream would initialise it
  const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream();
  std::lock_guard lock(g_owners_mutex);
  for (const Owner& owner : g_owners) {
    if (owner.stream == current) return owner.device;
  }
  return nullptr;
}

bool shares_cuda_device(int cuda_index) {
  int carried = 0;
  for (const auto& device : DeviceRegistry::get().gpus())
    carried += device->info().cuda_index == cuda_index;
  return carried > 1;
}

#else
struct DeviceScope::CudaGuards {};
#endif

DeviceScope::DeviceScope(LogicalDevice& device) : device_(device), outer_(t_current) {
  DeviceRegistry::get().note_use(device);
#ifdef TANDEM_WITH_CUDA
  if (device.kind() == DeviceKind::cuda) {
    cuda_ = std::make_unique<CudaGuards>(raw_cuda_stream(device.compute_stream()));
  }
#endif
  t_current = &device;
}

DeviceScope::~DeviceScope() { t_current = outer_; }

at::TensorOptions DeviceScope::options() const {
  return at::TensorOptions().device(device_.torch_device());
}

LogicalDevice* DeviceScope::current() {
  if (t_current) return t_current;
#ifdef TANDEM_WITH_CUDA
  return owner_of_current_stream();
#else
  return nullptr;
#endif
}

void hold_for_current_stream([[maybe_unused]] const at::Tensor& tensor) {
#ifdef TANDEM_WITH_CUDA
  if (tensor.is_cuda())
    tensor.record_stream(c10::cuda::getCurrentCUDAStream(tensor.device().index()).unwrap());
#endif
}

}  // namespace tandem
