// Following a run from outside, by its files alone: on this machine or on one that shares the disk.
#pragma once

#include <sys/types.h>

#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "observe/run_record.h"
#include "tandem/trainer.h"

namespace tandem {

// Whole lines as they are appended to a file. A file that was replaced or shortened is read anew.
class GrowingFile {
 public:
  explicit GrowingFile(std::filesystem::path path) : path_(std::move(path)) {}
  struct News {
    std::vector<std::string> lines;
    bool anew = false;  // what was given before no longer holds
  };
  // Nothing while the file is not there. Throws Error(io).
  News read();

 private:
  std::filesystem::path path_;
  ino_t inode_ = 0;
  off_t offset_ = 0;
  std::string rest_;  // of a line whose end is not there yet
};

class RunWatch {
 public:
  // Throws Error(config) when the folder is no run's.
  explicit RunWatch(const std::filesystem::path& folder);

  // Reads what is new; true when there was something.
  bool read();

  int64_t step() const { return last_ ? last_->step : 0; }
  int64_t total_steps() const { return total_steps_; }
  RunStanding standing() const { return standing_of(events_); }
  bool is_process_there() const { return tandem::is_process_there(events_); }
  // From the speed of the last steps; nothing while it is not known.
  std::optional<double> seconds_left() const;
  // "step 12/100  loss …  left 2m 05s", figures as the run itself shows them.
  std::string line() const;
  // "[#####-----]  50/100  loss …" within the given characters.
  std::string bar_line(size_t columns) const;
  // A few lines: how it stands, its last step, its validations, its devices.
  std::string state() const;

 private:
  void take(const MetricLine& line);
  StepReport report() const;
  std::string left() const;

  std::filesystem::path folder_;
  GrowingFile metrics_, event_lines_, timeline_lines_;
  std::optional<MetricLine> last_, last_validation_;
  BestValidation best_validation_;
  std::deque<std::pair<int64_t, double>> recent_;  // steps and their times
  std::vector<RunEvent> events_;
  std::vector<TimelineReading> timeline_;
  int64_t total_steps_ = 0;
  double began_ = 0;  // seconds since 1970
};

}  // namespace tandem
