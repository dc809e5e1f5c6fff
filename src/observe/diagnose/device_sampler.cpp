#include "observe/diagnose/device_sampler.h"

#include <algorithm>
#include <chrono>

#include "observe/diagnose/series.h"

namespace tandem {

void DeviceSampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DeviceSampler::forget() {
  const std::lock_guard lock(mutex_);
  readings_.clear();
  clocks_.clear();
}

void DeviceSampler::fill(DeviceFigures& device) const {
  std::vector<double> busy;
  for (const std::vector<DeviceReading>& all : readings_)
    for (const DeviceReading& one : all)
      if (one.name == device.name && one.utilisation >= 0) busy.push_back(one.utilisation);
  device.utilisation = analyse_series(busy, 0);
  double clocks = 0, megahertz = 0, braked = 0, capped = 0, count = 0;
  for (const ClockReading& one : clocks_) {
    if (one.index != device.index || one.clock < 0) continue;
    clocks += one.clock;
    braked += one.braked;
    capped += one.power_capped;
    megahertz += one.mhz;
    device.highest_mhz = std::max(device.highest_mhz, one.highest_mhz);
    for (const std::string& reason : one.reasons)
      if (std::ranges::find(device.clock_reasons, reason) == device.clock_reasons.end())
        device.clock_reasons.push_back(reason);
    ++count;
  }
  if (count == 0) return;
  device.clock = clocks / count;
  device.clock_mhz = megahertz / count;
  device.braked = braked / count;
  device.power_capped = capped / count;
}

void DeviceSampler::work() {
  const std::chrono::duration<double> every(options_.sample_every);
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, every, [&] { return stopping_; })) return;
    }
    auto reading = load_.read();
    const auto clocks = options_.read_clocks ? options_.read_clocks() : std::vector<ClockReading>();
    const std::lock_guard lock(mutex_);
    readings_.push_back(std::move(reading));
    clocks_.insert(clocks_.end(), clocks.begin(), clocks.end());
  }
}

}  // namespace tandem
