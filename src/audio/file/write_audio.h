// Writes sound so that a file is either whole or not there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tandem {

enum class SampleFormat { pcm16, float32 };

// `samples` are frames of interleaved channels in [-1, 1]; PCM clips what lies beyond. Throw
// Error(io), or Error(data) for samples that are not finite.
void write_wav(const std::string& path, std::span<const float> samples, int channels,
               int sample_rate, SampleFormat format);
void write_flac(const std::string& path, std::span<const float> samples, int channels,
                int sample_rate);  // 16 bit

}  // namespace tandem
