#include "observe/diagnose/made_speech.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "audio/file/write_audio.h"
#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {
namespace fs = std::filesystem;

MadeSpeech::MadeSpeech(int clips) {
  std::string pattern = (fs::temp_directory_path() / "tandem-made-speech-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    throw Error(ErrorKind::io,
                fmt::format("no folder can be made in `{}`: {}", fs::temp_directory_path().string(),
                            std::strerror(errno)));
  folder_ = pattern;
  constexpr int rate = 22050;
  std::string table;
  fs::create_directory(folder_ / "wavs");
  for (int i = 0; i < clips; ++i) {
    const double seconds = 2 + (i * 7 % 13) * 0.5;
    std::vector<float> samples(static_cast<size_t>(seconds * rate));
    // A voice of sorts: harmonics of a gliding pitch, louder and softer as syllables are.
    double phase = 0;
    for (size_t n = 0; n < samples.size(); ++n) {
      const double t = static_cast<double>(n) / rate;
      phase += 2 * std::numbers::pi * (110 + 3 * i + 20 * std::sin(3 * t)) / rate;
      const double loud = 0.25 * (1 + std::sin(25 * t));
      samples[n] = static_cast<float>(
          loud * (0.6 * std::sin(phase) + 0.3 * std::sin(3 * phase) + 0.1 * std::sin(9 * phase)));
    }
    write_wav((folder_ / "wavs" / fmt::format("clip{}.wav", i)).string(), samples, 1, rate,
              SampleFormat::pcm16);
    std::string text = fmt::format("made clip {}", i);
    for (int word = 0; word < static_cast<int>(seconds * 2); ++word) text += " spoken";
    table += fmt::format("clip{}|{}|{}\n", i, text, text);
  }
  write_file_atomically(folder_ / "metadata.csv", table);
}

MadeSpeech::~MadeSpeech() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace tandem
