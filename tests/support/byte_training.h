// Words of a short training of the byte GPT on the licence's text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

inline std::vector<std::string> byte_training(const std::filesystem::path& run,
                                              const std::string& steps,
                                              const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"train",
                                    "--train-data",
                                    TANDEM_SOURCE_DIR "/LICENSE",
                                    "--checkpoint-dir",
                                    run.string(),
                                    "--max-steps",
                                    steps,
                                    "--batch-size",
                                    "8"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace tandem
