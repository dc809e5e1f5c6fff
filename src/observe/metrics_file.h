// metrics.jsonl: one JSON object a step. A resumed run goes on where its checkpoint stands: lines
// of later steps, written before it stopped, are dropped, so that each step appears once.
#pragma once

#include <filesystem>
#include <fstream>

#include "tandem/trainer.h"

namespace tandem {

class MetricsFile {
 public:
  MetricsFile(const std::filesystem::path& path, int64_t first_step);
  void add(const StepReport& report);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace tandem
