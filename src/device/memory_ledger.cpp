#include "device/memory_ledger.h"

#include <fmt/format.h>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

void MemoryLedger::charge(uint64_t bytes) {
  uint64_t now = used_.load();
  while (true) {
    const uint64_t limit = limit_.load();
    if (limit != 0 && now + bytes > limit) {
      throw Error(ErrorKind::memory,
                  fmt::format("{} is out of memory: {} asked for, {} in use, limit {}", owner_,
                              format_bytes(bytes), format_bytes(now), format_bytes(limit)))
          .hint(
              "try a smaller --batch-size or --buffer-size, --grad-accum, or a higher memory "
              "limit");
    }
    if (used_.compare_exchange_weak(now, now + bytes)) break;
  }
  const uint64_t total = now + bytes;
  uint64_t peak = peak_.load();
  while (peak < total && !peak_.compare_exchange_weak(peak, total)) {
  }
  allocations_.fetch_add(1, std::memory_order_relaxed);
  bytes_ever_.fetch_add(bytes, std::memory_order_relaxed);
}

void MemoryLedger::release(uint64_t bytes) { used_.fetch_sub(bytes); }

}  // namespace tandem
