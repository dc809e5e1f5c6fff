// Memory of the machine, and of the control group this process is in.
#pragma once

#include <cstdint>
#include <filesystem>

namespace tandem {

// Bytes that programs can still have: files that were read are in memory too, but give way. 0 where
// nobody says.
uint64_t available_host_memory(const std::filesystem::path& root = "/");

}  // namespace tandem
