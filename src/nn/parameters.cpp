#include "nn/parameters.h"

#include <ATen/CPUGeneratorImpl.h>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "util/counted_random.h"

namespace tandem {

at::Tensor make_parameter(uint64_t seed, const std::string& name, at::IntArrayRef shape,
                          double deviation, double mean) {
  at::NoGradGuard no_grad;
  at::Tensor value = at::full(shape, mean, at::kFloat);
  if (deviation > 0) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(
        counted_draw(seed, "parameter", hash_text(name), 0));
    value.normal_(mean, deviation, generator);
  }
  if (const LogicalDevice* device = DeviceScope::current())
    value = value.to(device->torch_device());
  return value.requires_grad_(true);
}

}  // namespace tandem
