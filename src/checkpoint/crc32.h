// The checksum of zip files.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

uint32_t crc32(std::string_view bytes);

}  // namespace tandem
