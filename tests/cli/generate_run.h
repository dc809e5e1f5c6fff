// `tandem generate` with a small random model, as a user runs it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "support/program.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {

class GenerateRuns : public testing::Test {
 protected:
  using Words = std::vector<std::string>;
  static std::string model(const std::string& name = "tiny") {
    return TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/" + name;
  }
  // With two simulated GPUs and clips of a fifth of a second, unless `more` says otherwise.
  static Words words_of(const Words& more, int gpus = 2) {
    Words words = {"generate", "--simulate-gpus", std::to_string(gpus)};
    if (std::ranges::find(more, "--model") == more.end())
      words.insert(words.end(), {"--model", model()});
    const auto gives_length = [](const std::string& word) {
      return word == "--seconds" || word.find("max_new_tokens") != std::string::npos;
    };
    if (std::ranges::none_of(more, gives_length)) words.insert(words.end(), {"--seconds", "0.2"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static ProgramRun run(const Words& more, int gpus = 2) {
    return run_program(words_of(more, gpus));
  }
  std::string path(const std::string& name) { return (folder / name).string(); }

  // Captions c0, c1, …; every fifth id a second time.
  std::string write_captions(int count, const std::string& name = "captions.csv") {
    std::string text = "id,caption,mood\n";
    for (int i = 0; i < count; ++i) {
      text += "c" + std::to_string(i % 5 == 4 ? i - 1 : i) + ",\"calm piano,\nnumber " +
              std::to_string(i) + "\",soft\n";
    }
    return folder.write(name, text);
  }
  // Name and bytes of every clip.
  static std::map<std::string, std::string> clips_in(const std::filesystem::path& run) {
    std::map<std::string, std::string> clips;
    for (const auto& file : std::filesystem::directory_iterator(run / "audio_samples"))
      clips[file.path().filename().string()] = read_file(file.path());
    return clips;
  }
  static std::vector<std::string> lines_of(const std::filesystem::path& file) {
    std::vector<std::string> lines = split(read_file(file), '\n');
    std::erase(lines, "");
    return lines;
  }
  // The one folder inside.
  static std::filesystem::path only_folder_in(const std::filesystem::path& parent) {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(parent))
      found.push_back(entry.path());
    EXPECT_EQ(found.size(), 1u) << parent;
    return found.empty() ? parent : found.front();
  }

  TestFolder folder;
};

}  // namespace tandem
