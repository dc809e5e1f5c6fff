// The benchmarks there are, their options, and what a benchmark is given.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "observe/bench_record.h"
#include "tandem/config.h"

namespace tandem {

// One run with one value a parameter.
struct BenchJob {
  Arguments arguments;
  Config config;
  Parameters parameters = {};                       // those that were given several values
  std::string data_device = "", model_device = "";  // "/GPU:0"; empty until devices are configured
  bool first = true;                                // of its repetitions
};

struct Bench {
  const char* name;
  const char* summary;
  bool reads_settings;  // beside those that choose devices
  // Throws Error(usage) for a value that cannot be. Touches neither devices nor files.
  void (*check)(const BenchJob&);
  // Warms up by itself, then measures: one value a figure.
  BenchRecord (*run)(const BenchJob&);
};

struct BenchOption {
  Option option;
  std::vector<std::string> benches;  // that take it; empty: all
  bool sweeps = false;               // several values, separated by commas, are several runs
};

const std::vector<Bench>& benches();
const std::vector<BenchOption>& bench_options();
std::string bench_list();

// Throws Error(usage) for an unknown name, or for an option that belongs to other benchmarks.
const Bench& bench_named(const std::string& name);
void refuse_foreign_options(const Bench& bench, const Arguments& arguments);

Bench data_bench();
Bench step_bench();
Bench train_bench();
Bench synthesize_bench();
Bench music_bench();

// Values of options. They throw Error(usage) that names the option and what was expected.
int64_t count_option(const Arguments& arguments, const std::string& flag,
                     const std::string& otherwise, int64_t most);
std::vector<int64_t> count_list(const Arguments& arguments, const std::string& flag,
                                const std::string& otherwise, int64_t most);
std::string choice_option(const Arguments& arguments, const std::string& flag,
                          const std::string& otherwise, const std::vector<std::string>& choices);
double number_option(const Arguments& arguments, const std::string& flag,
                     const std::string& otherwise, double least);

}  // namespace tandem
