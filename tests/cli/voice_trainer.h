// The words of a short training of a tiny voice on a corpus of its own.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/feed/speech_corpus_folder.h"
#include "support/program.h"
#include "support/tiny_xtts.h"

namespace tandem {

struct VoiceTrainer {
  VoiceTrainer() { corpus.folder.write("vocab.json", tiny_vocabulary()); }

  std::vector<std::string> words(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"train",
                                    "--stage",
                                    "dvae",
                                    "--simulate-gpus",
                                    "1",
                                    "--train-data",
                                    corpus.index,
                                    "--model-size",
                                    "tiny",
                                    "--max-steps",
                                    "2",
                                    "--batch-size",
                                    "4",
                                    "--checkpoint-dir",
                                    run(),
                                    "data.language=en",
                                    "training.dvae_codes=64",
                                    "observe.sample_count=0"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string run() const { return (corpus.folder / "run").string(); }

  // The first line of what it complains, without "error: ".
  void expect_refused(const std::vector<std::string>& more, int code,
                      const std::string& part) const {
    const ProgramRun refused = run_program(words(more));
    EXPECT_EQ(refused.code, code) << part << "\n" << refused.err;
    EXPECT_NE(refused.err.find("error: "), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(run())) << part;
    std::filesystem::remove_all(run());
  }

  tests::SpeechFolder corpus{12};
};

}  // namespace tandem
