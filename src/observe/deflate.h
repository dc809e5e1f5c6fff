// Compression that every PNG reader understands (RFC 1950 and 1951): earlier bytes are looked up,
// codes are the fixed ones. Made for pictures with few colours and equal rows, which it shrinks
// well; other data grows by an eighth at most.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

// With header and checksum (zlib's format).
std::string deflated(std::string_view bytes);

uint32_t adler32(std::string_view bytes);

}  // namespace tandem
