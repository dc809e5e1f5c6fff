// Figures of a benchmark beside those of an earlier one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "observe/bench_record.h"

namespace tandem {

// What `tandem bench --format json` wrote, reduced to what can be compared.
struct OldBench {
  struct Entry {
    Parameters parameters;
    std::vector<std::string> row;
    std::string label, figure;
    double mean = 0;
  };
  std::string file, bench, machine, date, commit;
  std::vector<Entry> entries;
};

// Throws Error(io) when it cannot be read, Error(corrupt) when it is no such document.
OldBench read_old_bench(const std::string& file);

// Throws Error(usage) where it holds figures of another benchmark.
void refuse_other_bench(const OldBench& old, const std::string& bench);

struct Change {
  std::string row, figure, unit;
  double before = 0, now = 0;
  bool worse = false;                                // by more than the tolerance
  double share() const { return now / before - 1; }  // -0.25: a quarter less
};

struct BenchComparison {
  std::vector<Change> changes;       // every figure that can be judged and stands in both
  std::vector<std::string> missing;  // rows of the old file that were not measured now
  std::vector<Change> worse() const;
};

// `tolerance` is a share: 0.1. Throws Error(usage) when the two have nothing in common.
BenchComparison compare_bench(const OldBench& old, const std::string& bench,
                              const BenchRecord& record, double tolerance);

std::string comparison_markdown(const OldBench& old, const BenchComparison& comparison);
nlohmann::ordered_json comparison_document(const OldBench& old, const BenchComparison& comparison,
                                           double tolerance);
// The contract of `--compare`: a line for each figure that is worse, for standard error; empty when
// none is.
std::vector<std::string> complaints(const OldBench& old, const BenchComparison& comparison,
                                    double tolerance);

}  // namespace tandem
