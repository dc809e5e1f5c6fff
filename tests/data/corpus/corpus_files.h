// Small datasets on disk: tones as WAV, tars by hand.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "audio/file/write_audio.h"
#include "support/temporary_folder.h"

namespace tandem::tests {

struct Tone {
  double seconds = 1;
  double hertz = 220;
  float size = 0.3f;
  int rate = 16000;
};

inline std::vector<float> samples_of(const Tone& tone) {
  std::vector<float> samples(static_cast<size_t>(tone.seconds * tone.rate));
  for (size_t i = 0; i < samples.size(); ++i) {
    const double angle = 2 * M_PI * tone.hertz * static_cast<double>(i) / tone.rate;
    samples[i] = tone.size * static_cast<float>(std::sin(angle));
  }
  return samples;
}

inline void write_tone(const std::filesystem::path& path, const Tone& tone = {}) {
  std::filesystem::create_directories(path.parent_path());
  write_wav(path.string(), samples_of(tone), 1, tone.rate, SampleFormat::pcm16);
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// `count` clips of different tones, LJSpeech's way; ids c000, c001, ...
inline void write_ljspeech(const std::filesystem::path& root, int count, double seconds = 1) {
  std::string table;
  for (int i = 0; i < count; ++i) {
    const std::string id = fmt::format("c{:03}", i);
    write_tone(root / "wavs" / (id + ".wav"), {.seconds = seconds, .hertz = 100.0 + 3 * i});
    table += id + "|Say the word.|say the word number " + id + "\n";
  }
  write_text(root / "metadata.csv", table);
}

// A member of a tar with a right header; `type` as in the format.
inline std::string tar_member(const std::string& name, const std::string& bytes, char type = '0',
                              int64_t claimed = -1) {
  std::string header(512, '\0');
  std::memcpy(header.data(), name.data(), std::min<size_t>(100, name.size()));
  const auto octal = [&](size_t at, size_t length, int64_t value) {
    const std::string digits = fmt::format("{:0{}o}", value, length - 1);
    std::memcpy(header.data() + at, digits.data(), length - 1);
  };
  octal(100, 8, 0644);
  octal(124, 12, claimed < 0 ? static_cast<int64_t>(bytes.size()) : claimed);
  header[156] = type;
  std::memcpy(header.data() + 257, "ustar\00000", 8);
  std::memset(header.data() + 148, ' ', 8);
  int64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  octal(148, 7, sum);
  std::string member = header + bytes;
  member.resize((member.size() + 511) / 512 * 512, '\0');
  return member;
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace tandem::tests
