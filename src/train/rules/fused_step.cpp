#include "train/rules/fused_step.h"

#include "device/logical_device.h"
#include "tandem/config.h"

namespace tandem {

bool fuses_gpt_step(const TrainingConfig& config, DeviceKind device) {
  return device == DeviceKind::cuda && config.precision == "bf16" && config.enable_kernel_fusion &&
         !config.enable_eager_debug && config.lora_rank == 0;
}

}  // namespace tandem
