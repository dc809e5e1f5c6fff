// LibTorch's CPU allocator, charging simulated devices for what is taken inside their scope.
#include <c10/core/CPUAllocator.h>

#include <mutex>

#include "device/charged_blocks.h"
#include "device/cuda_ledger.h"
#include "device/device_scope.h"
#include "device/logical_device.h"

namespace tandem {
namespace {

class ChargingCpuAllocator final : public c10::Allocator {
 public:
  explicit ChargingCpuAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(size_t bytes) override {
    LogicalDevice* device = DeviceScope::current();
    if (!device || device->kind() != DeviceKind::simulated || bytes == 0)
      return inner_->allocate(bytes);
    return allocate_charged(*inner_, device->memory(), bytes, &free_block);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  static c10::DeleterFnPtr inner_deleter;

 private:
  static void free_block(void* block) {
    ChargedBlocks::get().free(block);
    inner_deleter(block);
  }
  c10::Allocator* inner_;
};

c10::DeleterFnPtr ChargingCpuAllocator::inner_deleter = nullptr;

}  // namespace

void install_ledgers() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::Allocator* inner = c10::GetCPUAllocator();
    ChargingCpuAllocator::inner_deleter = inner->raw_deleter();
    constexpr uint8_t above_the_standard_one = 1;
    c10::SetCPUAllocator(new ChargingCpuAllocator(inner), above_the_standard_one);
    install_cuda_ledger();
  });
}

}  // namespace tandem
