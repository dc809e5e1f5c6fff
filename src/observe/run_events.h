// events.jsonl: what happened to a run beside its steps, one JSON object a line, never taken back:
//
//   {"time":1.79e9,"kind":"start","step":0,"total_steps":100,"host":"a","pid":7,
//    "devices":[{"name":"/GPU:0","hardware":"NVIDIA H200"}]}
//   {"time":1.79e9,"kind":"skip","step":41,"text":"the gradient is not finite"}
//
// Kinds: start, resume, plan (with `rows`), skip, those of TrainHooks::on_event, and at the end one
// of finish (all steps are done), stop (it was told to), fail.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct RunEvent {
  double time = 0;  // seconds since 1970
  std::string kind;
  int64_t step = 0;
  std::string text;
  // Of start and resume.
  int64_t total_steps = 0;
  std::string host;
  int64_t pid = 0;
  std::vector<std::pair<std::string, std::string>> devices;  // name and hardware
  // Of a plan.
  std::vector<std::pair<std::string, std::string>> rows;

  bool begins() const { return kind == "start" || kind == "resume"; }
  bool ends() const { return kind == "finish" || kind == "stop" || kind == "fail"; }
};

double seconds_since_1970();
// Of this process and machine.
RunEvent beginning_event(int64_t first_step, int64_t total_steps);

class RunEvents {
 public:
  explicit RunEvents(std::filesystem::path path) : path_(std::move(path)) {}
  // Any thread. `time` is set to now when it is 0. Throws Error(io).
  void add(RunEvent event);

 private:
  std::filesystem::path path_;
  std::mutex mutex_;
};

// What is no event, such as a line that was cut off, is passed over.
std::vector<RunEvent> parse_run_events(const std::string& lines);

}  // namespace tandem
