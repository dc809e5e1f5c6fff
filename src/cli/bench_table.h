// A benchmark's record as people and programs read it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "observe/bench_origin.h"
#include "observe/bench_record.h"

namespace tandem {

// Everything that is said of a benchmark beside its figures.
struct BenchHeading {
  std::string bench;    // "data"
  std::string command;  // "tandem bench data --data assets/demo"
  std::string version;
  int64_t warm_up = 0, repeat = 1;
  BenchOrigin origin;
};

// One Markdown table for the rows of each table; columns nothing was measured for are left out.
std::string bench_markdown(const BenchHeading& heading, const BenchRecord& record);
// One line a figure, under one heading.
std::string bench_csv(const BenchHeading& heading, const BenchRecord& record);
// The means at their places (of the first combination of parameters), then the heading, and under
// `figures` every figure of every row with its mean, deviation and values.
nlohmann::ordered_json bench_document(const BenchHeading& heading, const BenchRecord& record);

// 1520.4 -> "1520", 12.34 -> "12.3", 0.01234 -> "0.0123"
std::string short_number(double value);
// "batch_size=8, whole": which row this is, in words.
std::string row_name(const Parameters& parameters, const std::string& label);

}  // namespace tandem
