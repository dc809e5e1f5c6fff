#include "observe/music_report_clip.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "audio/file/audio_file.h"
#include "audio/signal/mel.h"
#include "observe/mel_picture.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

template <class T>
T number_at(const std::string& bytes, size_t place) {
  T value{};
  if (place + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Chunk {
  size_t start = 0, size = 0;
};

std::optional<Chunk> find_chunk(const std::string& bytes, const char* name) {
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const size_t size = number_at<uint32_t>(bytes, at + 4);
    if (bytes.compare(at, 4, name) == 0)
      return Chunk{at + 8, std::min(size, bytes.size() - at - 8)};
    at += 8 + size + size % 2;
  }
  return std::nullopt;
}

std::string picture_of(AudioFile& file) {
  const AudioInfo& info = file.info();
  std::vector<float> samples(static_cast<size_t>(info.frames));
  file.read_mono(0, info.frames, samples.data());
  constexpr int64_t wanted_frames = 700;  // as wide as a card
  MelOptions mel = mel_default();
  mel.sample_rate = info.sample_rate;
  mel.f_max = info.sample_rate / 2.0;
  mel.hop = static_cast<int>(std::clamp<int64_t>(info.frames / wanted_frames, 64, 4096));
  const int64_t frames = mel_frames(info.frames, mel);
  std::vector<float> values(static_cast<size_t>(mel.mels * frames));
  log_mel_clip(samples.data(), info.frames, mel, frames, values.data(), frames);
  return encode_png(mel_picture({values, mel.mels, frames}));
}

}  // namespace

std::optional<std::string> to_wav16(const std::string& bytes) {
  constexpr uint16_t is_pcm = 1, is_float = 3, is_extensible = 0xFFFE;
  if (bytes.size() < 12 || bytes.compare(0, 4, "RIFF") != 0 || bytes.compare(8, 4, "WAVE") != 0)
    return std::nullopt;
  const auto format = find_chunk(bytes, "fmt "), data = find_chunk(bytes, "data");
  if (!format || !data || format->size < 16) return std::nullopt;
  auto kind = number_at<uint16_t>(bytes, format->start);
  if (kind == is_extensible && format->size >= 26)
    kind = number_at<uint16_t>(bytes, format->start + 24);
  const auto channels = number_at<uint16_t>(bytes, format->start + 2);
  const auto rate = number_at<uint32_t>(bytes, format->start + 4);
  const auto bits = number_at<uint16_t>(bytes, format->start + 14);
  if (kind != is_float || bits != 32 || channels == 0) return std::nullopt;
  const size_t count = data->size / sizeof(float);
  const auto length = static_cast<uint32_t>(count * sizeof(int16_t));
  std::string out = "RIFF";
  append(out, static_cast<uint32_t>(36 + length));
  out += "WAVEfmt ";
  append(out, uint32_t{16});
  append(out, is_pcm);
  append(out, channels);
  append(out, rate);
  append(out, static_cast<uint32_t>(rate * channels * sizeof(int16_t)));
  append(out, static_cast<uint16_t>(channels * sizeof(int16_t)));
  append(out, uint16_t{16});
  out += "data";
  append(out, length);
  for (size_t i = 0; i < count; ++i) {
    const auto sample = number_at<float>(bytes, data->start + i * sizeof(float));
    const float scaled = std::isfinite(sample) ? std::round(sample * 0x1p15F) : 0;
    append(out, static_cast<int16_t>(std::clamp(scaled, -0x1p15F, 0x1p15F - 1)));
  }
  return out;
}

std::optional<ClipLook> look_at_clip(const std::filesystem::path& path) {
  try {
    const auto file = open_audio({.path = path.string()});
    const AudioInfo& info = file->info();
    ClipLook look{.seconds = info.seconds(), .channels = info.channels, .rate = info.sample_rate};
    look.png = picture_of(*file);
    look.type = path.extension() == ".flac" ? "audio/flac" : "audio/wav";
    look.bytes = read_file(path);
    if (auto half = to_wav16(look.bytes)) look.bytes = std::move(*half);
    return look;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace tandem
