// libFuzzer: any bytes as a WAV file. Opening and reading it either works or throws AudioError;
// parts read alone equal the same parts of the whole.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "audio/file/byte_source.h"
#include "audio/file/wav_layout.h"
#include "audio/file/wav_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  // A short head makes the parser read the rest of the header itself.
  const size_t head_bytes = size > 0 && data[size - 1] % 2 == 0 ? 4096 : 16;
  try {
    const auto source = std::make_shared<MemoryBytes>(bytes, "fuzz.wav");
    const WavLayout layout = parse_wav(*source, bytes.first(std::min(size, head_bytes)));
    if (layout.data_offset + layout.data_bytes > source->size() || layout.data_bytes < 0) abort();
    if (layout.stored == StoredAs::other) return 0;
    const auto file = open_wav(source, layout, {});
    const int64_t frames = file->info().frames;
    std::vector<float> whole(static_cast<size_t>(frames)), part(whole.size() / 2);
    file->read_mono(0, frames, whole.data());
    const auto first = static_cast<int64_t>(whole.size() - part.size());
    file->read_mono(first, static_cast<int64_t>(part.size()), part.data());
    if (!std::equal(part.begin(), part.end(), whole.begin() + first)) abort();
  } catch (const AudioError&) {
  }
  return 0;
}
