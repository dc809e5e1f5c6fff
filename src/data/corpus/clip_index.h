// The index of a corpus: one row a clip, in one file that is memory-mapped, so that 100,000 clips
// open at once. Versioned, checked by sums, never trusted: a file that is not what it claims is
// Error(corrupt) with a sentence. Any number of threads may read one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// A clip as it is found in a dataset and as it is written to the index.
struct Clip {
  std::string id, text, speaker, language;
  std::string path;      // as the dataset gives it, made relative to the root where possible
  int64_t offset = 0;    // of the sound in that file: not 0 in a tar
  int64_t bytes = 0;     // of the sound
  int64_t modified = 0;  // of the file, nanoseconds since 1970
  int64_t frames = 0;
  int32_t sample_rate = 0, channels = 0;
  int32_t tokens = 0;        // ids of the cleaned text, or its characters without a tokenizer
  int64_t first_frame = 0;   // of the clip in its sound: not 0 in a part of a longer recording
  int32_t part = 0;          // 1: frames [first_frame, first_frame + frames) of a longer sound
  uint64_t fingerprint = 0;  // of the decoded samples; 0: not computed (prepare --quick)
};

// The same without copies; valid as long as its index.
struct ClipView {
  std::string_view id, text, speaker, language, path;
  int64_t offset, bytes, modified, frames;
  int32_t sample_rate, channels, tokens, part;
  int64_t first_frame;
  uint64_t fingerprint;
  double seconds() const { return sample_rate > 0 ? static_cast<double>(frames) / sample_rate : 0; }
};

class ClipIndex {
 public:
  // Reads the header and checks it and the sums; rows are read when asked for. Throws Error(io) or
  // Error(corrupt).
  static ClipIndex open(const std::string& path);
  // The same from bytes in memory, which are copied.
  static ClipIndex parse(std::string_view bytes, const std::string& name);
  // Rows from memory: for tests and for corpora that were not prepared.
  static ClipIndex from(std::vector<Clip> clips, std::string root);
  // Atomically. A root in or above the folder of the index is kept relative to it, so that both can
  // be moved together. Throws Error(io).
  static void write(const std::string& path, const std::vector<Clip>& clips,
                    const std::string& root);

  struct Mapped;
  int64_t size() const;
  ClipView operator[](int64_t row) const;
  const std::string& root() const;
  std::string full_path(int64_t row) const;

 private:
  explicit ClipIndex(std::shared_ptr<const Mapped> mapped) : mapped_(std::move(mapped)) {}
  std::shared_ptr<const Mapped> mapped_;
};

}  // namespace tandem
