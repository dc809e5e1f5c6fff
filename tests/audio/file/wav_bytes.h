// WAV files byte by byte, right or wrong on purpose; sources that count or fail; the fault of an
// action.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "audio/file/wav_layout.h"
#include "audio/file/wav_reader.h"

namespace tandem::tests {

template <class Number>
std::string raw(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

template <class Number>
std::string raw_all(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

inline std::string chunk(const std::string& id, const std::string& body) {
  return id + raw(static_cast<uint32_t>(body.size())) + body + std::string(body.size() % 2, '\0');
}

struct Format {
  int tag = 1, channels = 1;
  uint32_t rate = 16000;
  int bits = 16;
  int block = -1;  // -1: the right one
  int subformat = 0;
};

inline std::string format_chunk(const Format& format) {
  const int block = format.block >= 0 ? format.block : format.channels * ((format.bits + 7) / 8);
  std::string body = raw(static_cast<uint16_t>(format.tag)) +
                     raw(static_cast<uint16_t>(format.channels)) + raw(format.rate) +
                     raw(static_cast<uint32_t>(format.rate * static_cast<uint32_t>(block))) +
                     raw(static_cast<uint16_t>(block)) + raw(static_cast<uint16_t>(format.bits));
  if (format.tag == 0xFFFE) {
    body += raw<uint16_t>(22) + raw(static_cast<uint16_t>(format.bits)) + raw<uint32_t>(0) +
            raw(static_cast<uint16_t>(format.subformat)) +
            std::string("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
  }
  return chunk("fmt ", body);
}

// A data chunk that claims another size than it has.
inline std::string data_claiming(uint32_t size, const std::string& samples) {
  return "data" + raw(size) + samples;
}

inline std::string riff(const std::string& chunks, const char* id = "RIFF", int64_t size = -1) {
  return id +
         raw(static_cast<uint32_t>(size >= 0 ? size : static_cast<int64_t>(chunks.size()) + 4)) +
         "WAVE" + chunks;
}

inline std::string wav16(const std::vector<int16_t>& samples, const Format& format = {}) {
  return riff(format_chunk(format) + chunk("data", raw_all(samples)));
}

// Owns its bytes; counts what is read; can end early or fail, as files do.
class TestBytes final : public ByteSource {
 public:
  explicit TestBytes(std::string bytes) : bytes_(std::move(bytes)) {
    size_ = static_cast<int64_t>(bytes_.size());
    name_ = "`test.wav`";
  }
  int64_t read_at(int64_t offset, std::span<std::byte> into) override {
    if (fails) throw AudioError(AudioFault::unreadable, "cannot read `test.wav`: broken disk");
    MemoryBytes memory(std::as_bytes(std::span(bytes_)), "");
    const int64_t got = memory.read_at(offset, into);
    ++reads;
    bytes_read += got;
    return got;
  }
  void cut(size_t size) { bytes_.resize(size); }  // as if another program had: size() stays
  int64_t reads = 0, bytes_read = 0;
  bool fails = false;

 private:
  std::string bytes_;
};

inline WavLayout layout_of(const std::string& bytes) {
  TestBytes source(bytes);
  return parse_wav(source, {});
}

inline std::unique_ptr<AudioFile> open_bytes(const std::shared_ptr<TestBytes>& source,
                                             const AudioLimits& limits = {}) {
  return open_wav(source, parse_wav(*source, {}), limits);
}

inline std::vector<float> read_part(AudioFile& file, int64_t first, int64_t count) {
  std::vector<float> samples(static_cast<size_t>(count));
  file.read_mono(first, count, samples.data());
  return samples;
}

inline std::vector<float> read_whole(AudioFile& file) {
  return read_part(file, 0, file.info().frames);
}

inline std::vector<float> read_wav(const std::string& bytes) {
  return read_whole(*open_bytes(std::make_shared<TestBytes>(bytes)));
}

// The fault by name, "none" when the action returned, and what was said.
struct Faulted {
  std::string fault = "none", sentence, hint;
  bool operator==(const char* name) const { return fault == name; }
};
inline void PrintTo(const Faulted& faulted, std::ostream* out) {
  *out << faulted.fault << ": " << faulted.sentence;
}

inline Faulted fault_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const AudioError& error) {
    return {to_string(error.fault()), error.what(), error.hint()};
  } catch (const Error& error) {
    return {"no AudioError", error.what(), error.hint()};
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tandem::tests
