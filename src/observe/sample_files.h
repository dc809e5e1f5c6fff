// samples/ of a run's folder: `samples/step-<n>/<name>.wav`, `.png`, `.txt`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tandem/trainer.h"

namespace tandem {

// A name fit for a file, in one folder: what is no letter, digit, `-`, `_` or `.` becomes `_`.
std::string sample_file_name(const std::string& name);

// The bytes that were written; empty: the sample has no such part.
struct WrittenSample {
  std::string wav, png;
  int64_t width = 0, height = 0;  // of the picture
};

// Samples of sound that are not finite are written as silence: a model that has not learned much
// yet must not stop its run. Throws Error(io).
WrittenSample write_sample(const std::filesystem::path& run, const SampleReport& sample);

// What is there, by step and name.
struct SampleFiles {
  int64_t step = 0;
  std::string name;
  std::filesystem::path wav, png, txt;  // empty: none
};
std::vector<SampleFiles> find_samples(const std::filesystem::path& run);

}  // namespace tandem
