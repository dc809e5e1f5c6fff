#include "audio/file/write_audio.h"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "audio/file/byte_source.h"
#include "audio/file/samples.h"
#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::data, fmt::format("cannot write {}: {}", shown_name(path), why));
}

void check_samples(const std::string& path, std::span<const float> samples, int channels,
                   int sample_rate, int most_channels) {
  if (channels < 1 || channels > most_channels) {
    refuse(path, fmt::format("{} channels, 1 to {} fit into it", channels, most_channels));
  }
  if (sample_rate < 1) refuse(path, fmt::format("{} samples a second", sample_rate));
  if (samples.size() % static_cast<size_t>(channels) != 0) {
    refuse(path, fmt::format("{} samples are no whole number of frames of {} channels",
                             samples.size(), channels));
  }
}

void check_finite(const std::string& path, std::span<const float> samples) {
  if (!all_finite(samples)) refuse(path, "some samples are no numbers (NaN or infinite)");
}

// What reads as x/32768 is written as x again.
int16_t quantised(float sample) {
  const float scaled = std::round(sample * 0x1p15F);
  return static_cast<int16_t>(std::clamp(scaled, -0x1p15F, 0x1p15F - 1));
}

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// `fmt ` and, as other than PCM must have it, `fact`.
std::string wav_header(int channels, int sample_rate, bool pcm, uint32_t frames,
                       uint32_t data_bytes) {
  const auto sample_bytes = static_cast<uint16_t>(pcm ? 2 : 4);
  const auto block = static_cast<uint16_t>(channels * sample_bytes);
  const uint32_t format_bytes = pcm ? 16 : 18, fact_bytes = pcm ? 0 : 12;
  std::string header = "RIFF";
  put<uint32_t>(header, 4 + 8 + format_bytes + fact_bytes + 8 + data_bytes);
  header += "WAVEfmt ";
  put<uint32_t>(header, format_bytes);
  put<uint16_t>(header, pcm ? 1 : 3);
  put(header, static_cast<uint16_t>(channels));
  put(header, static_cast<uint32_t>(sample_rate));
  put(header, static_cast<uint32_t>(sample_rate) * block);
  put(header, block);
  put(header, static_cast<uint16_t>(8 * sample_bytes));
  if (!pcm) {
    put<uint16_t>(header, 0);  // no more to the format
    header += "fact";
    put<uint32_t>(header, 4);
    put(header, frames);
  }
  header += "data";
  put(header, data_bytes);
  return header;
}

// Where libsndfile writes: it goes back to correct its header, so this is no plain appending.
struct MemoryStream {
  std::string bytes;
  size_t place = 0;
};

MemoryStream& stream_of(void* user) { return *static_cast<MemoryStream*>(user); }

sf_count_t memory_size(void* user) { return static_cast<sf_count_t>(stream_of(user).bytes.size()); }

sf_count_t memory_seek(sf_count_t offset, int whence, void* user) {
  MemoryStream& stream = stream_of(user);
  const auto from = whence == SEEK_SET   ? 0
                    : whence == SEEK_CUR ? static_cast<sf_count_t>(stream.place)
                                         : memory_size(user);
  if (from + offset < 0) return -1;
  stream.place = static_cast<size_t>(from + offset);
  return from + offset;
}

sf_count_t memory_read(void* into, sf_count_t count, void* user) {
  MemoryStream& stream = stream_of(user);
  const size_t there = stream.bytes.size() - std::min(stream.place, stream.bytes.size());
  const size_t got = std::min(static_cast<size_t>(count), there);
  if (got > 0) std::memcpy(into, stream.bytes.data() + stream.place, got);
  stream.place += got;
  return static_cast<sf_count_t>(got);
}

sf_count_t memory_write(const void* from, sf_count_t count, void* user) {
  MemoryStream& stream = stream_of(user);
  const size_t end = stream.place + static_cast<size_t>(count);
  try {
    if (end > stream.bytes.size()) stream.bytes.resize(end);
  } catch (const std::bad_alloc&) {  // must not pass through C code; the write comes out short
    return 0;
  }
  std::memcpy(stream.bytes.data() + stream.place, from, static_cast<size_t>(count));
  stream.place = end;
  return count;
}

sf_count_t memory_tell(void* user) { return static_cast<sf_count_t>(stream_of(user).place); }

}  // namespace

void write_wav(const std::string& path, std::span<const float> samples, int channels,
               int sample_rate, SampleFormat format) {
  const bool pcm = format == SampleFormat::pcm16;
  const size_t sample_bytes = pcm ? 2 : 4;
  check_samples(path, samples, channels, sample_rate,
                std::numeric_limits<uint16_t>::max() / static_cast<int>(sample_bytes));
  constexpr size_t header_room = 64;
  if (samples.size() > (std::numeric_limits<uint32_t>::max() - header_room) / sample_bytes) {
    refuse(path, "a WAV file holds less than 4 GiB; write FLAC, or several files");
  }
  check_finite(path, samples);
  const auto data_bytes = static_cast<uint32_t>(samples.size() * sample_bytes);
  const auto frames = static_cast<uint32_t>(samples.size() / static_cast<size_t>(channels));
  std::string bytes = wav_header(channels, sample_rate, pcm, frames, data_bytes);
  bytes.reserve(bytes.size() + data_bytes);
  if (pcm) {
    for (const float sample : samples) put(bytes, quantised(sample));
  } else {
    bytes.append(reinterpret_cast<const char*>(samples.data()), data_bytes);
  }
  write_file_atomically(path, bytes);
}

void write_flac(const std::string& path, std::span<const float> samples, int channels,
                int sample_rate) {
  constexpr int most_channels = 8;
  check_samples(path, samples, channels, sample_rate, most_channels);
  check_finite(path, samples);
  std::vector<int16_t> numbers(samples.size());
  std::ranges::transform(samples, numbers.begin(), quantised);

  static SF_VIRTUAL_IO calls = {.get_filelen = memory_size,
                                .seek = memory_seek,
                                .read = memory_read,
                                .write = memory_write,
                                .tell = memory_tell};
  MemoryStream stream;
  SF_INFO info = {.frames = 0,
                  .samplerate = sample_rate,
                  .channels = channels,
                  .format = SF_FORMAT_FLAC | SF_FORMAT_PCM_16,
                  .sections = 0,
                  .seekable = 0};
  SNDFILE* const file = sf_open_virtual(&calls, SFM_WRITE, &info, &stream);
  if (file == nullptr) {
    refuse(path, fmt::format("FLAC does not take {} channels at {} samples a second", channels,
                             sample_rate));
  }
  const auto count = static_cast<sf_count_t>(numbers.size());
  const bool written = sf_write_short(file, numbers.data(), count) == count;
  const std::string why = written ? "" : sf_strerror(file);
  if (sf_close(file) != 0 || !written) refuse(path, "the FLAC encoder failed " + why);
  write_file_atomically(path, stream.bytes);
}

}  // namespace tandem
