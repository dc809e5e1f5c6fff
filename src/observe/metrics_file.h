// metrics.jsonl: one JSON object a step. A resumed run goes on where its checkpoint stands: lines
// of later steps, written before it stopped, are dropped, so that each step appears once.
//
//   {"step":7,"split":"train","loss":3.1,"gradient_norm":0.5,"learning_rate":0.001,
//    "tokens_per_second":1000.0,"wait_share":0.01,"terms":{"text":2.0,"mel":3.08},"time":1.79e9}
//
// Numbers that are not finite are null. `time` is in seconds since 1970.
#pragma once

#include <filesystem>
#include <fstream>

#include "tandem/trainer.h"

namespace tandem {

class MetricsFile {
 public:
  // Both throw Error(io).
  MetricsFile(const std::filesystem::path& path, int64_t first_step);
  void add(const StepReport& report);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
  int64_t last_validation_ = -1;  // the step of the last one that stands in the file
};

}  // namespace tandem
