// Stored samples as mono floats: full scale is [-1, 1), several channels become their mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem {

// Little-endian; integers are signed but for uint8.
enum class StoredAs { other, uint8, int16, int24, int32, float32, float64, alaw, mulaw };
const char* to_string(StoredAs stored);  // "pcm16", "float32", ...
int64_t bytes_of(StoredAs stored);       // of one sample; 0 for `other`

// out.size() frames of interleaved samples. Returns false when a result is NaN or infinite, which
// only float samples can give.
bool mix_to_mono(StoredAs stored, const std::byte* bytes, int64_t channels, std::span<float> out);

bool all_finite(std::span<const float> samples);

}  // namespace tandem
