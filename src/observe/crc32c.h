// The checksum of event files: CRC-32C (Castagnoli), which is not the one of zip files and PNG.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

uint32_t crc32c(std::string_view bytes);

// As event files store it: a checksum of bytes that hold checksums would lose its strength.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tandem
