// What one logical device holds, byte for byte, and how much it may hold.
//
// LibTorch's allocators are wrapped once (`install_ledgers`): every tensor memory taken while a
// DeviceScope is open is charged to that scope's device before it is taken, and given back when it
// is freed, on whatever thread. A charge over the limit throws Error(memory) and takes nothing.
// This is what makes a simulated device run out of memory, and one of several logical devices of a
// split GPU keep to its share.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tandem {

class MemoryLedger {
 public:
  explicit MemoryLedger(std::string owner) : owner_(std::move(owner)) {}

  void charge(uint64_t bytes);   // throws Error(memory) over the limit
  void release(uint64_t bytes);  // never throws

  void set_limit(uint64_t bytes) { limit_ = bytes; }  // 0: none
  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_; }
  uint64_t peak() const { return peak_; }
  uint64_t allocations() const { return allocations_; }
  uint64_t bytes_ever() const { return bytes_ever_; }

 private:
  std::string owner_;
  std::atomic<uint64_t> limit_{0}, used_{0}, peak_{0}, allocations_{0}, bytes_ever_{0};
};

// Wraps the CPU allocator, and the CUDA one where this build has it. Must come before the first
// CUDA allocation; calling it again does nothing.
void install_ledgers();

}  // namespace tandem
