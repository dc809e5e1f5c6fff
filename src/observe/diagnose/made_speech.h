// A small dataset for a machine that is looked at before there is one: clips of 2 to 8 seconds in a
// temporary folder, removed with the object.
#pragma once

#include <filesystem>

namespace tandem {

class MadeSpeech {
 public:
  explicit MadeSpeech(int clips = 64);  // throws Error(io)
  ~MadeSpeech();
  MadeSpeech(const MadeSpeech&) = delete;
  MadeSpeech& operator=(const MadeSpeech&) = delete;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace tandem
