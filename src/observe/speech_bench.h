// How fast an XTTS model of a given size speaks on one device, with random weights: one stream, its
// first sound, and many at once. Figures include the vocoder where they do not say the GPT alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generate/speech_engine.h"
#include "observe/step_paths.h"

namespace tandem {

class LogicalDevice;

struct SpeechBenchOptions {
  std::string model_size = "normal";
  std::vector<int64_t> batches = {16, 64, 256};
  int64_t codes = 215;  // of each text: ten seconds
  int64_t text_tokens = 60;
  int64_t first_sounds = 50;  // requests whose first sound is timed
  SpeechPrecision precision = SpeechPrecision::automatic;
};

struct BatchRate {
  int64_t batch = 1;
  double codes_per_second = 0, times_real_time = 0;
  double gpt_codes_per_second = 0;  // without the vocoder; 0 where not measured
  double peak_memory_bytes = 0;
};

struct SpeechBench {
  std::string device, precision;
  double code_seconds = 0;                          // of sound
  BatchRate one;                                    // a stream, decoded and spoken
  double one_step = 0;                              // seconds a code of the GPT alone
  std::vector<StepPath> paths;                      // of that step
  double first_sound_p50 = 0, first_sound_p95 = 0;  // seconds, with the voice at hand, 8 codes
  std::vector<BatchRate> many;
  double weight_bytes = 0;  // read in every step
  double bandwidth = 0;     // measured, bytes a second; 0 on the CPU
  double floor() const { return bandwidth > 0 ? weight_bytes / bandwidth : 0; }  // seconds a code
};

SpeechBench bench_speech(LogicalDevice& device, const SpeechBenchOptions& options);

}  // namespace tandem
