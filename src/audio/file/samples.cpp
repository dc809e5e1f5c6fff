#include "audio/file/samples.h"

#include <array>
#include <bit>
#include <cstring>

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "samples are read as they are stored");

template <class Number>
Number load(const std::byte* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

// The expansions of ITU-T G.711, to 16 bit.
constexpr int16_t expand_mulaw(int code) {
  const int inverted = ~code & 0xFF;
  const int magnitude = ((((inverted & 0x0F) << 3) + 0x84) << ((inverted & 0x70) >> 4)) - 0x84;
  return static_cast<int16_t>((inverted & 0x80) != 0 ? -magnitude : magnitude);
}

constexpr int16_t expand_alaw(int code) {
  const int even = code ^ 0x55;
  const int segment = (even & 0x70) >> 4;
  int magnitude = ((even & 0x0F) << 4) + 8;
  if (segment > 0) magnitude = (magnitude + 0x100) << (segment - 1);
  return static_cast<int16_t>((even & 0x80) != 0 ? magnitude : -magnitude);
}

template <int16_t (*expand)(int)>
constexpr std::array<float, 256> expansion_table() {
  std::array<float, 256> table{};
  for (int code = 0; code < 256; ++code) {
    table[static_cast<size_t>(code)] = static_cast<float>(expand(code)) / 0x1p15F;
  }
  return table;
}
constexpr auto mulaw_table = expansion_table<expand_mulaw>();
constexpr auto alaw_table = expansion_table<expand_alaw>();

// One type a way of storing: its size, and one sample as a float.
struct Uint8 {
  static constexpr int64_t size = 1;
  static float at(const std::byte* p) {
    return static_cast<float>(static_cast<int>(load<uint8_t>(p)) - 128) * 0x1p-7F;
  }
};
struct Int16 {
  static constexpr int64_t size = 2;
  static float at(const std::byte* p) { return static_cast<float>(load<int16_t>(p)) * 0x1p-15F; }
};
struct Int24 {
  static constexpr int64_t size = 3;
  static float at(const std::byte* p) {
    const uint32_t word = static_cast<uint32_t>(load<uint16_t>(p)) << 8 |
                          static_cast<uint32_t>(load<uint8_t>(p + 2)) << 24;
    return static_cast<float>(static_cast<int32_t>(word)) * 0x1p-31F;
  }
};
struct Int32 {
  static constexpr int64_t size = 4;
  static float at(const std::byte* p) { return static_cast<float>(load<int32_t>(p)) * 0x1p-31F; }
};
struct Float32 {
  static constexpr int64_t size = 4;
  static float at(const std::byte* p) { return load<float>(p); }
};
struct Float64 {
  static constexpr int64_t size = 8;
  static float at(const std::byte* p) { return static_cast<float>(load<double>(p)); }
};
struct Alaw {
  static constexpr int64_t size = 1;
  static float at(const std::byte* p) { return alaw_table[load<uint8_t>(p)]; }
};
struct Mulaw {
  static constexpr int64_t size = 1;
  static float at(const std::byte* p) { return mulaw_table[load<uint8_t>(p)]; }
};

// In runs of a fixed length: at -O2 the compiler makes vectors only of those.
template <class Frame>
void fill(float* __restrict out, int64_t count, const Frame& frame) {
  constexpr int64_t run = 16;
  int64_t i = 0;
  for (; i + run <= count; i += run) {
    for (int64_t j = 0; j < run; ++j) out[i + j] = frame(i + j);
  }
  for (; i < count; ++i) out[i] = frame(i);
}

template <class Sample>
void mix(const std::byte* __restrict bytes, int64_t channels, std::span<float> out) {
  const auto frames = static_cast<int64_t>(out.size());
  constexpr int64_t size = Sample::size;
  if (channels == 1) {
    fill(out.data(), frames, [=](int64_t i) { return Sample::at(bytes + i * size); });
  } else if (channels == 2) {
    fill(out.data(), frames, [=](int64_t i) {
      const std::byte* pair = bytes + i * 2 * size;
      return (Sample::at(pair) + Sample::at(pair + size)) * 0.5F;
    });
  } else {
    fill(out.data(), frames, [=](int64_t i) {
      double sum = 0;
      const std::byte* sample = bytes + i * channels * size;
      for (int64_t c = 0; c < channels; ++c, sample += size) sum += Sample::at(sample);
      return static_cast<float>(sum / static_cast<double>(channels));
    });
  }
}

}  // namespace

const char* to_string(StoredAs stored) {
  switch (stored) {
    case StoredAs::uint8: return "pcm8";
    case StoredAs::int16: return "pcm16";
    case StoredAs::int24: return "pcm24";
    case StoredAs::int32: return "pcm32";
    case StoredAs::float32: return "float32";
    case StoredAs::float64: return "float64";
    case StoredAs::alaw: return "alaw";
    case StoredAs::mulaw: return "mulaw";
    case StoredAs::other: break;
  }
  return "other";
}

int64_t bytes_of(StoredAs stored) {
  switch (stored) {
    case StoredAs::uint8:
    case StoredAs::alaw:
    case StoredAs::mulaw: return 1;
    case StoredAs::int16: return 2;
    case StoredAs::int24: return 3;
    case StoredAs::int32:
    case StoredAs::float32: return 4;
    case StoredAs::float64: return 8;
    case StoredAs::other: break;
  }
  return 0;
}

bool mix_to_mono(StoredAs stored, const std::byte* bytes, int64_t channels, std::span<float> out) {
  switch (stored) {
    case StoredAs::uint8: mix<Uint8>(bytes, channels, out); return true;
    case StoredAs::int16: mix<Int16>(bytes, channels, out); return true;
    case StoredAs::int24: mix<Int24>(bytes, channels, out); return true;
    case StoredAs::int32: mix<Int32>(bytes, channels, out); return true;
    case StoredAs::alaw: mix<Alaw>(bytes, channels, out); return true;
    case StoredAs::mulaw: mix<Mulaw>(bytes, channels, out); return true;
    case StoredAs::float32: mix<Float32>(bytes, channels, out); return all_finite(out);
    case StoredAs::float64: mix<Float64>(bytes, channels, out); return all_finite(out);
    case StoredAs::other: break;
  }
  return false;
}

bool all_finite(std::span<const float> samples) {
  constexpr uint32_t exponent = 0x7F800000;
  constexpr size_t run = 16;
  uint32_t bad = 0;
  size_t i = 0;
  for (; i + run <= samples.size(); i += run) {
    for (size_t j = 0; j < run; ++j) {
      const uint32_t bits = std::bit_cast<uint32_t>(samples[i + j]);
      bad |= static_cast<uint32_t>((bits & exponent) == exponent);
    }
  }
  for (; i < samples.size(); ++i) {
    bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(samples[i]) & exponent) == exponent);
  }
  return bad == 0;
}

}  // namespace tandem
