// A small corpus of made clips for tests: tones of different length and rate, with texts.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "audio/file/write_audio.h"
#include "data/corpus/prepare.h"
#include "data/feed/speech_feed.h"
#include "support/temporary_folder.h"
#include "tandem/config.h"

namespace tandem::tests {

struct SpeechFolder {
  explicit SpeechFolder(int clips = 40, std::vector<int> rates = {22050}) {
    std::string table;
    for (int i = 0; i < clips; ++i) {
      const int rate = rates[static_cast<size_t>(i) % rates.size()];
      const double seconds = 0.6 + (i * 7 % 30) * 0.1;
      std::vector<float> samples(static_cast<size_t>(seconds * rate));
      for (size_t n = 0; n < samples.size(); ++n) {
        const double t = static_cast<double>(n) / rate;
        samples[n] = static_cast<float>(0.4 * std::sin(6.2832 * (150 + 20 * i) * t) +
                                        0.1 * std::sin(6.2832 * 1733 * t));
      }
      std::filesystem::create_directories(folder / "wavs");
      write_wav(path(i), samples, 1, rate, SampleFormat::pcm16);
      const std::string text = "clip number " + std::to_string(i) + std::string(i % 9, 'a');
      table += name(i) + "|" + text + "|" + text + "\n";
    }
    folder.write("metadata.csv", table);
    index =
        prepare_corpus({.input = folder.path().string(), .limits = {.outlier_z = 0}, .workers = 1})
            .index;
  }
  static std::string name(int i) { return "clip" + std::to_string(i); }
  std::string path(int i) const { return (folder / ("wavs/" + name(i) + ".wav")).string(); }
  std::string bad_list() const { return (folder / "bad_files.tsv").string(); }
  // What the index holds, to be changed before a corpus is made of it.
  std::vector<Clip> clips() const {
    const ClipIndex from = ClipIndex::open(index);
    std::vector<Clip> all;
    for (int64_t row = 0; row < from.size(); ++row) {
      const ClipView view = from[row];
      all.push_back({.id = std::string(view.id),
                     .text = std::string(view.text),
                     .path = from.full_path(row),
                     .bytes = view.bytes,
                     .modified = view.modified,
                     .frames = view.frames,
                     .sample_rate = view.sample_rate,
                     .channels = view.channels,
                     .tokens = view.tokens});
    }
    return all;
  }
  static DataConfig settings() {
    DataConfig config;
    config.batch_size = 8;
    config.buckets = 3;
    config.num_workers = 3;
    return config;
  }

  TestFolder folder;
  std::string index;
};

}  // namespace tandem::tests
