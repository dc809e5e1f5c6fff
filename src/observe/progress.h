// A moving line on the terminal with a bar, what is done, and how long it will take; plain lines,
// now and then, where standard error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tandem {

class Progress {
 public:
  // `every`: how many items between plain lines; `item` is what they are called there.
  Progress(int64_t first, int64_t total, int64_t every, std::string item = "step");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t done, const std::string& figures);

  // "[#####-----]  50/100" at the given width of the bar.
  static std::string bar(int64_t done, int64_t total, int width);

 private:
  double seconds_left(int64_t done) const;
  int64_t first_, total_, every_;
  std::string item_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace tandem
