// Can work on one device read the other's memory without going through the host?
#pragma once

namespace tandem {

class LogicalDevice;

// True also for devices that share their memory: simulated ones, parts of one GPU.
bool has_peer_access(const LogicalDevice& from, const LogicalDevice& to);

}  // namespace tandem
