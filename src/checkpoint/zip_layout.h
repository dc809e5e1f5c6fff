// Signatures and sizes of the parts of a zip file, all little-endian.
#pragma once

#include <cstdint>

namespace tandem {

constexpr uint32_t zip_local_header = 0x04034b50, zip_directory_entry = 0x02014b50,
                   zip_directory_end = 0x06054b50, zip64_directory_end = 0x06064b50,
                   zip64_locator = 0x07064b50;
constexpr uint64_t zip_local_bytes = 30, zip_entry_bytes = 46, zip_end_bytes = 22,
                   zip64_end_bytes = 56, zip64_locator_bytes = 20;
constexpr uint16_t zip64_extra = 1;  // the extra field with 64-bit sizes

}  // namespace tandem
