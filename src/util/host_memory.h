// Memory of the machine, and of the control groups this process is in: a container, a SLURM job.
#pragma once

#include <cstdint>
#include <filesystem>

namespace tandem {

// Bytes that this process can still have: files that were read are in memory too, but give way. 0
// where nobody says.
uint64_t available_host_memory(const std::filesystem::path& root = "/");

// The smallest limit of its control groups; all of 64 bits where there is none.
uint64_t control_group_limit(const std::filesystem::path& root = "/");

}  // namespace tandem
