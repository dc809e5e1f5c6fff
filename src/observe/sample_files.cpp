#include "observe/sample_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "audio/file/write_audio.h"
#include "observe/mel_picture.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;

std::string sample_file_name(const std::string& name) {
  constexpr size_t longest = 120;  // bytes; a file system takes 255 with the ending
  std::string fit = name.substr(0, longest);
  for (char& c : fit) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ||
                       c == '.' || static_cast<unsigned char>(c) >= 0x80;
    if (!plain) c = '_';
  }
  if (fit.empty() || fit.front() == '.') fit.insert(0, 1, '_');
  return fit;
}

WrittenSample write_sample(const fs::path& run, const SampleReport& sample) {
  const fs::path folder = run / "samples" / fmt::format("step-{}", sample.step);
  const std::string name = sample_file_name(sample.name);
  make_folder(folder);
  WrittenSample written;
  if (!sample.wave.empty() && sample.rate > 0) {
    std::vector<float> wave = sample.wave;
    for (float& value : wave)
      if (!std::isfinite(value)) value = 0;
    const fs::path path = folder / (name + ".wav");
    write_wav(path.string(), wave, 1, sample.rate, SampleFormat::pcm16);
    written.wav = read_file(path);
  }
  if (!sample.mel.empty()) {
    const Picture picture = mel_picture({sample.mel, sample.mels, sample.frames});
    written.png = encode_png(picture);
    written.width = picture.width;
    written.height = picture.height;
    write_file_atomically(folder / (name + ".png"), written.png);
  }
  if (!sample.text.empty()) write_file_atomically(folder / (name + ".txt"), sample.text + "\n");
  return written;
}

std::vector<SampleFiles> find_samples(const fs::path& run) {
  std::map<std::pair<int64_t, std::string>, SampleFiles> found;
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(run / "samples", error)) {
    const std::string folder_name = folder.path().filename().string();
    if (!folder_name.starts_with("step-")) continue;
    const auto step = parse_int(folder_name.substr(5));
    if (!step) continue;
    for (const auto& file : fs::directory_iterator(folder.path(), error)) {
      const fs::path& path = file.path();
      const std::string ending = path.extension().string();
      if (path.filename().string().starts_with(".")) continue;  // a draft that a kill left
      SampleFiles files{.step = *step, .name = path.stem().string()};
      SampleFiles& entry = found.try_emplace({*step, files.name}, files).first->second;
      if (ending == ".wav") entry.wav = path;
      if (ending == ".png") entry.png = path;
      if (ending == ".txt") entry.txt = path;
    }
  }
  std::vector<SampleFiles> samples;
  for (auto& [key, files] : found)
    if (!files.wav.empty() || !files.png.empty() || !files.txt.empty())
      samples.push_back(std::move(files));
  return samples;
}

}  // namespace tandem
