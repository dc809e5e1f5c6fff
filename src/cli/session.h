// What commands that read settings and choose devices have in common.
#pragma once

#include <string>

#include "cli/command.h"
#include "config/resolve.h"
#include "tandem/devices.h"

namespace tandem {

// Settings from all their sources; notices are logged.
Resolved resolve_settings(const Arguments& arguments);
ResolveRequest settings_request(const Arguments& arguments);

// --simulate-gpus, --split-gpu and TANDEM_SIMULATE_GPUS, without settings.
DeviceRequest device_request(const Arguments& arguments);
// The same with the devices named in the settings.
DeviceRequest device_request(const Arguments& arguments, const Config& config);

// Early configuration as a program does it: a failed request for data and model GPUs prints the
// contract's last two lines (002-5) and throws an error that needs no more words.
void configure_or_stop(const DeviceRequest& request);

}  // namespace tandem
