// A step of one clip or one text, computed by one choice of kernels after the other in one run:
// what each of them saves. They give the same bits (nn/rows/few_rows.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/rows/few_rows.h"

namespace tandem {

class LogicalDevice;
struct Musicgen;
struct MusicBenchOptions;

struct StepPath {
  std::string name;
  double seconds = 0;  // a step
};

// From the oldest choice to the newest.
std::vector<StepPath> measure_step_paths(const std::function<double(const FewRows&)>& seconds);

// The decode loop of one clip; empty where steps are not made of these kernels.
std::vector<StepPath> music_step_paths(const Musicgen& model, LogicalDevice& device,
                                       const MusicBenchOptions& options);

}  // namespace tandem
