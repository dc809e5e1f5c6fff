// Which ledger was charged for which block of memory, so that freeing it on any thread, long after
// the scope that took it, credits the right device. Sharded: allocation is on the hot path of every
// thread.
#pragma once

#include <c10/core/Allocator.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "device/memory_ledger.h"

namespace tandem {

class ChargedBlocks {
 public:
  void add(const void* block, MemoryLedger* ledger, uint64_t bytes) {
    Shard& shard = shard_of(block);
    std::lock_guard lock(shard.mutex);
    shard.blocks[block] = {ledger, bytes};
  }
  void free(const void* block) {
    Shard& shard = shard_of(block);
    std::lock_guard lock(shard.mutex);
    const auto found = shard.blocks.find(block);
    if (found == shard.blocks.end()) return;
    found->second.ledger->release(found->second.bytes);
    shard.blocks.erase(found);
  }

  // Never destroyed: tensors in static storage are freed after everything else.
  static ChargedBlocks& get() {
    static auto* instance = new ChargedBlocks;
    return *instance;
  }

 private:
  struct Charge {
    MemoryLedger* ledger;
    uint64_t bytes;
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<const void*, Charge> blocks;
  };
  Shard& shard_of(const void* block) {
    return shards_[(reinterpret_cast<uintptr_t>(block) >> 9) % shards_.size()];
  }
  std::array<Shard, 16> shards_;
};

// `bytes` from `inner`, charged to `ledger` first. `free_block` must credit them
// (ChargedBlocks::free) and hand the block to the deleter of `inner`.
inline c10::DataPtr allocate_charged(c10::Allocator& inner, MemoryLedger& ledger, size_t bytes,
                                     c10::DeleterFnPtr free_block) {
  ledger.charge(bytes);
  c10::DataPtr data;
  try {
    data = inner.allocate(bytes);
  } catch (...) {
    ledger.release(bytes);
    throw;
  }
  const c10::Device where = data.device();
  void* block = data.release_context();
  ChargedBlocks::get().add(block, &ledger, bytes);
  return {block, block, free_block, where};
}

}  // namespace tandem
