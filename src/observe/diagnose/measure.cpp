#include "observe/diagnose/measure.h"

#include <algorithm>

#include "device/logical_device.h"
#include "device/registry.h"
#include "observe/checks_gpu.h"
#include "observe/device_load.h"
#include "observe/diagnose/measure_parts.h"
#include "observe/diagnose/stage_times.h"
#include "observe/diagnose/storage.h"
#include "observe/monitor_gpus.h"
#include "util/threads.h"

namespace tandem {

namespace {

std::vector<DeviceFigures> devices_of(Subject& subject) {
  std::vector<DeviceFigures> figures;
  for (LogicalDevice* device : devices_to_watch()) {
    const std::vector<LogicalDevice*> models = subject.models();
    figures.push_back({.name = device->name(),
                       .index = device->original_index(),
                       .holds_model = std::ranges::find(models, device) != models.end(),
                       .prepares = device == &subject.data_device(),
                       .real = device->kind() == DeviceKind::cuda});
  }
  return figures;
}

void read_memory(Figures& figures) {
  DeviceLoad load(devices_to_watch());
  for (const DeviceReading& reading : load.read()) {
    for (DeviceFigures& device : figures.devices) {
      if (device.name != reading.name) continue;
      device.limit = reading.limit;
      const uint64_t peak = DeviceRegistry::get().find(device.name).memory().peak();
      device.peak = std::max({device.peak, reading.used, reading.name == "/CPU:0" ? 0 : peak});
    }
  }
}

}  // namespace

Figures measure(Subject& subject, const MeasureOptions& options) {
  Figures figures{.batches_a_step = subject.batches_a_step(),
                  .queues_work = subject.queues_work(),
                  .devices = devices_of(subject),
                  .cores = static_cast<int>(std::max<size_t>(1, allowed_cpus().size()))};
  measure_headspace(subject, options, figures);
  time_stages(subject, figures);
  measure_feed(subject, options, figures);
  figures.parts = subject.parts();
  figures.low_precision_speed = low_precision_speed(*subject.models().front());
  read_memory(figures);
  const ColdRead cold = read_cold(subject.files());
  figures.storage = {.batch_bytes = subject.bytes_read_a_batch(),
                     .rate = cold.rate,
                     .rate_of_four = cold.rate_of_four,
                     .useful_readers = cold.useful_readers};
  return figures;
}

std::vector<ClockReading> read_gpu_clocks() {
  constexpr uint64_t power_cap = 0x4, brakes = 0x8 | 0x20 | 0x40 | 0x80;  // NVML's reasons
  std::vector<ClockReading> readings;
  for (const GpuHealth& gpu : read_gpu_health(DeviceRegistry::get().probe())) {
    if (!gpu.clock || !gpu.most_clock || *gpu.most_clock == 0) continue;
    const uint64_t reasons = gpu.clock_reasons.value_or(0);
    readings.push_back({.index = gpu.index,
                        .clock = static_cast<double>(*gpu.clock) / *gpu.most_clock,
                        .braked = (reasons & brakes) != 0,
                        .power_capped = (reasons & power_cap) != 0,
                        .mhz = static_cast<double>(*gpu.clock),
                        .highest_mhz = static_cast<double>(*gpu.most_clock),
                        .reasons = throttle_reasons(reasons)});
  }
  return readings;
}

}  // namespace tandem
