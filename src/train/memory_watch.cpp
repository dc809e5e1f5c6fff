#include "train/memory_watch.h"

#include <fmt/format.h>

#include "device/logical_device.h"
#include "util/log.h"

namespace tandem {

std::string MemoryWatch::line(int64_t step, const std::string& role, int index, uint64_t used,
                              uint64_t limit) {
  return fmt::format("[Step {}] {} GPU {}: {}/{}MB ({:.1f}%)", step, role, index, used >> 20,
                     limit >> 20, 100.0 * static_cast<double>(used) / static_cast<double>(limit));
}

bool MemoryWatch::grows_without_end(const std::string& device, uint64_t used) {
  Trend& trend = trends_[device];
  const bool grew = trend.last > 0 && used > trend.last + trend.last / 100;
  trend.growing = grew ? trend.growing + 1 : 0;
  trend.last = used;
  return trend.growing >= readings_of_a_leak;
}

void MemoryWatch::report(int64_t step) {
  for (const Watched& watched : devices_) {
    const uint64_t used = watched.device->memory().used(), limit = watched.device->memory().limit();
    if (limit == 0) continue;
    say(line(step, watched.role, watched.device->original_index(), used, limit));
    Trend& trend = trends_[watched.device->name()];
    if (grows_without_end(watched.device->name(), used) && !trend.warned) {
      trend.warned = true;
      say(fmt::format(
          "⚠️  Memory of {} GPU {} has grown at each of the last {} readings, to {}MB: is "
          "something leaking?",
          watched.role, watched.device->original_index(), readings_of_a_leak, used >> 20));
    }
  }
}

}  // namespace tandem
