// A run's folder: config.yaml, metrics.jsonl, step-<n>/ with weights, optimizer and state, and
// `latest` and `best` pointing at two of them. A checkpoint appears whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"

namespace tandem {

struct RunState {
  int64_t step = 0;        // optimizer steps done
  int64_t next_batch = 0;  // position in the order of batches
  bool finished = false;   // the run reached what was asked for, and its model was written
  std::optional<double> best_loss;
  double last_loss = 0;
  int64_t best_step = 0;
  // Of early stopping: the last validation loss that counted as better, validations since then.
  std::optional<double> counted_loss;
  int64_t validations_without_gain = 0;
  int64_t skipped = 0;  // steps that were not taken
  // What was due behind the last step was left out, because the run was asked to stop.
  bool owes_checks = false;
  double seconds = 0;  // it has taken, resumptions included
  // By replica: into how many parts its batches are cut, for want of memory. Empty: none is.
  std::vector<int64_t> divisions;
};

struct Checkpoint {
  NamedTensors weights, optimizer;
  NamedTensors average;  // of the weights, under the same names; empty: none is kept
  NamedTensors buffers;  // what belongs to the model but is not trained
  RunState state;
};

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }

  // Saves step-<n>/, moves `latest` (and `best` when told) onto it, and removes all but the newest
  // `keep` and the best.
  void save(const Checkpoint& checkpoint, bool is_best, int64_t keep) const;

  // What `latest` names; nothing when the folder has no checkpoint. A latest that cannot be read is
  // an Error(corrupt) that names it and the one before it.
  std::optional<Checkpoint> load_latest() const;
  std::optional<Checkpoint> load_best() const;  // what `best` names, or else `latest`
  std::optional<RunState> latest_state() const;
  // What a killed process had begun to write, also within checkpoints.
  void remove_leftovers() const;
  // Writes into the latest checkpoint that the run is finished.
  void mark_finished() const;

 private:
  std::filesystem::path checkpoint_path(int64_t step) const;
  std::vector<int64_t> saved_steps() const;  // ascending
  void remove_old(int64_t keep) const;
  Checkpoint load(const std::filesystem::path& checkpoint) const;
  std::filesystem::path path_;
};

// The folder a command works in: `wanted`, or, when it is empty, the newest unfinished run under
// `runs` with the same `fingerprint`, or a new one named by the time. With `fresh` always a new
// one, never over another.
//
// A run may have several parts, folders in its own that are trained one after another: it is in use
// when one of them is, finished when all are, and its fingerprint is that of the first.
struct RunChoice {
  std::filesystem::path path;
  bool resumes = false;
};
RunChoice choose_run_folder(const std::string& wanted, bool fresh, const std::string& fingerprint,
                            const std::filesystem::path& runs = "runs",
                            const std::vector<std::string>& parts = {""});

}  // namespace tandem
