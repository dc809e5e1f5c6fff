// One run of `tandem tune`: starts a measurement at a time as a program of its own, keeps the time,
// tells how it goes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/command.h"
#include "config/resolve.h"
#include "observe/tune_child.h"
#include "observe/tune_walk.h"
#include "util/clock.h"

namespace tandem {

struct TuneRequest {
  bool generate = false;
  double minutes = 5;
  std::optional<double> probe_seconds = {};  // of one measurement; none: by the minutes
  std::string model;                         // generate: the model folder
  std::string program;                       // to start; empty: this one
};

// What a program said of the devices and of the byte model, without computing anything.
struct TunePlan {
  std::string gpu;   // "NVIDIA H200"; empty: the CPU
  std::string kind;  // cpu, simulated, cuda
  double limit_bytes = 0, capability = 0;
  double fixed_bytes = 0, bytes_a_clip = 0;
  int64_t batch = 0, clips = 0;  // generate: by memory; captions there are
};

class TuneSession {
 public:
  TuneSession(TuneRequest request, const Arguments& arguments);
  ~TuneSession();
  TuneSession(const TuneSession&) = delete;
  TuneSession& operator=(const TuneSession&) = delete;

  // The settings that measurements start from.
  void set_base(const Resolved& resolved);
  TunePlan plan();
  TuneResult search(const TuneTask& task);
  const std::string& unit() const { return unit_; }
  double seconds() const { return seconds_since(start_); }

 private:
  ChildEnd start(const std::string& probe, const TuneSettings& settings, double seconds);
  TuneReading measure(const std::string& what, const TuneSettings& settings);
  double seconds_left() const { return request_.minutes * 60 - seconds(); }
  void tell(const std::string& what, const TuneSettings& settings, const TuneReading& reading);

  TuneRequest request_;
  std::vector<std::string> device_words_;
  std::filesystem::path folder_;  // of our own
  TuneTask task_;
  std::string unit_ = "clips/s";
  int done_ = 0, expected_ = 1;
  double spent_ = 0;  // by measurements
  Clock::time_point start_ = Clock::now();
};

// "2026-11-15"
std::string today();

}  // namespace tandem
