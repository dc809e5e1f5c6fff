// Which runs take the GPT's step in kernels of its own (nn/gpt_step), by their settings.
#pragma once

namespace tandem {

enum class DeviceKind;
struct TrainingConfig;

// Of the gpt stage; the others have no form without their kernels.
bool fuses_gpt_step(const TrainingConfig& config, DeviceKind device);

}  // namespace tandem
