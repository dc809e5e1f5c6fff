// What `tandem tune` found, for people and for the next run: a table against the guess, a JSON
// document, and a preset whose comments hold the measurements.
//
// A preset file has one part for training and one for generating. Each part begins with a line that
// says so, and writing one leaves the other as it is.
#pragma once

#include <filesystem>
#include <string>

#include "observe/tune_walk.h"

namespace tandem {

struct TuneReport {
  TuneTask task;
  TuneResult result;
  std::string gpu;         // "NVIDIA H200"; empty: the CPU
  std::string guess_name;  // "preset h200", "the settings given"
  std::string subject;     // "stage gpt, size normal, data `corpus/`"
  std::string date;        // "2026-11-15"
  double seconds = 0;      // of the whole search
  std::string unit = "clips/s";
};

// "fits, 12.3 clips/s ± 2 %, 40.1 MiB of 64.0 MiB (63 %), waits 0.4 %"
std::string describe_reading(const TuneReading& reading, const std::string& unit);
// "data.batch_size=16 data.num_workers=8", of the values that differ from `from`.
std::string describe_change(const TuneSettings& settings, const TuneSettings& from);

std::string tune_table(const TuneReport& report);
std::string tune_json(const TuneReport& report, const std::string& file);
std::string preset_part(const TuneReport& report);

// Writes the part, keeping the other one of the file. Throws Error(io) for a file that is there and
// was not written by it.
void write_preset_part(const std::filesystem::path& file, const TuneReport& report);
// Throws what write_preset_part would throw for this file, before any time is spent.
void check_preset_file(const std::filesystem::path& file);

}  // namespace tandem
