// evaluation_results/evaluation_results.json and per_sample_scores.csv of a run's folder, as
// ConceptCaps lays them out: `fad_score`, `fad_per_sample`, and the rows of metadata.csv with a
// column `fad_score`. Scores that others wrote there (CLAP's, for example) stay.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "generate/clip_fad.h"
#include "generate/verify_clips.h"

namespace tandem {

struct Evaluation {
  const VerifyReport& clips;
  const FadReport& fad;
  std::vector<std::string> files;  // of fad.clip_scores
  std::filesystem::path reference, model;
};

// Gives the path of the JSON file. Throws Error(io).
std::filesystem::path write_evaluation(const Evaluation& evaluation);

}  // namespace tandem
