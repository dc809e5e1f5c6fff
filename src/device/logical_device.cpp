#include "device/logical_device.h"

#include <ATen/record_function.h>
#include <fmt/format.h>

#include "device/device_scope.h"

namespace tandem {

void OperationCounter::add(std::string_view name) {
  total_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  const auto found = names_.find(name);
  if (found != names_.end()) {
    ++found->second;
  } else {
    names_.emplace(name, 1);
  }
}

std::map<std::string, uint64_t> OperationCounter::by_name() const {
  std::lock_guard lock(mutex_);
  return {names_.begin(), names_.end()};
}

void OperationCounter::reset() {
  std::lock_guard lock(mutex_);
  total_ = 0;
  names_.clear();
}

LogicalDevice::LogicalDevice(LogicalDeviceInfo info) : info_(std::move(info)), memory_(name()) {
  memory_.set_limit(info_.memory_limit);
}

LogicalDevice::~LogicalDevice() = default;

std::string LogicalDevice::name() const {
  return info_.kind == DeviceKind::cpu ? "/CPU:0" : fmt::format("/GPU:{}", info_.index);
}

c10::Device LogicalDevice::torch_device() const {
  if (info_.kind != DeviceKind::cuda) return {c10::DeviceType::CPU};
  return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(info_.cuda_index)};
}

namespace {
std::unique_ptr<Stream> make_stream(LogicalDevice& device) {
  switch (device.kind()) {
    case DeviceKind::cpu: return make_inline_stream(device);
    case DeviceKind::simulated: return make_thread_stream(device);
    case DeviceKind::cuda: return make_cuda_stream(device);
  }
  return nullptr;
}
}  // namespace

Stream& LogicalDevice::compute_stream() {
  std::call_once(compute_once_, [&] { compute_ = make_stream(*this); });
  return *compute_;
}

Stream& LogicalDevice::copy_stream() {
  std::call_once(copy_once_, [&] { copy_ = make_stream(*this); });
  return *copy_;
}

Stream& LogicalDevice::preparation_stream() {
  if (kind() != DeviceKind::cuda) return compute_stream();
  std::call_once(preparation_once_, [&] { preparation_ = make_stream(*this); });
  return *preparation_;
}

void count_operations(bool on) {
  static std::mutex mutex;
  static std::optional<at::CallbackHandle> handle;
  std::lock_guard lock(mutex);
  if (on == handle.has_value()) return;
  if (!on) {
    at::removeCallback(*handle);
    handle.reset();
    return;
  }
  handle =
      at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function)
                                                           -> std::unique_ptr<at::ObserverContext> {
                              if (LogicalDevice* device = DeviceScope::current())
                                device->operations().add(function.name());
                              return nullptr;
                            }).scopes({at::RecordScope::FUNCTION}));
}

}  // namespace tandem
