// How fast the GPT of an XTTS model trains on one device: whole optimizer steps, by default with
// the conditioning encoder, on made batches whose every row is full.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

class LogicalDevice;

struct TrainBenchOptions {
  std::string model_size = "normal";
  int64_t rows = 16;
  int64_t places = 632;  // of a row: latents, text, codes
  std::string precision = "bf16";
  bool graph = true, fusion = true, recompute = false, fp8 = false;
  bool conditioning = true;  // without: the GPT alone, as peers have it; its latents are given
  double dropout = 0.1;
  int64_t steps = 20;
};

struct TrainBench {
  double step_seconds = 0, tokens_per_second = 0;
  double peak_bytes = 0;        // of the device's memory, by its own count
  double flops_per_second = 0;  // of the products and the attention
  int64_t captures = 0;
};

TrainBench bench_training(LogicalDevice& device, const TrainBenchOptions& options);

// Floating-point operations of a step's products and attention, forward and backward.
double training_flops(const TrainBenchOptions& options);

}  // namespace tandem
