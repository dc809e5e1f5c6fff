// A stage of training: what is learned from which data. One a run; it makes a learner for each
// device and gives the batches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/feed/batch_maker.h"
#include "train/learner.h"

namespace tandem {

class LogicalDevice;
struct Config;

// Something to look at or listen to, of one validation.
struct Sample {
  std::string name;  // "validation/1", "sentence/2": letters, digits, `/`, `_`, `-`
  at::Tensor wave;   // [samples] float32 on the CPU; undefined: none
  int rate = 0;
  at::Tensor mel;    // [mels, frames] float32 on the CPU, shown as a picture; undefined: none
  std::string text;  // shown beside it
};

class Stage {
 public:
  virtual ~Stage() = default;

  // Throws Error(config) where `device`, whose scope is open, cannot do what the settings ask.
  // Called before anything is written.
  virtual void check_device(const LogicalDevice& device) const { (void)device; }

  // The run's folder is there now.
  virtual void begin() {}

  // On the device of the open DeviceScope; the same weights for every replica.
  virtual std::unique_ptr<Learner> make_learner(LogicalDevice& device) = 0;

  // Batches of an epoch follow each other without end; the same whatever the number of replicas.
  virtual BatchMaker& batches() = 0;
  virtual int64_t batches_an_epoch() const = 0;
  // nullptr: nothing to validate on.
  virtual BatchMaker* validation() = 0;
  virtual int64_t validation_batches() const = 0;
  // First step from which validation losses are compared: where what is learned changes there, the
  // lowest before it says nothing of what comes after. Until then all are.
  virtual int64_t compared_from() const { return 0; }

  // What is in a batch of training, a line each; empty: it has no clips.
  virtual std::vector<std::string> clips_of(int64_t /*batch*/) const { return {}; }

  // Tokens (places, frames) and seconds of sound a batch holds on average: for tok/s and the plan.
  virtual double tokens_a_batch() const = 0;
  virtual const char* token_name() const { return "tokens"; }
  virtual double seconds_a_batch() const { return 0; }

  // What must be the same for a checkpoint to be continued, in words: "vocabulary=6681 clips=620".
  virtual std::string fingerprint() const = 0;
  // Rows of the plan.
  virtual std::vector<std::pair<std::string, std::string>> facts() const { return {}; }

  // For people, at the end of a run; empty: nothing.
  virtual std::string closing_words() const { return ""; }

  // Samples of the state `learner` is in. Called by rank 0 between steps; may wait for the device.
  // Fewer where the run is asked to stop meanwhile.
  virtual std::vector<Sample> samples(Learner& learner) {
    (void)learner;
    return {};
  }

  // Writes what was learned into `folder`, a model folder that `tandem synthesize` and the other
  // stages read. `weights` are float32 on the CPU under the names of the phases' tensors, `buffers`
  // those of the learner.
  virtual void export_model(const NamedTensors& weights, const NamedTensors& buffers,
                            const std::string& folder) = 0;
};

// By `config.training.stage`. Throws Error(config), Error(data), Error(io).
std::unique_ptr<Stage> make_stage(const Config& config, LogicalDevice& data_device,
                                  const std::string& bad_list);

}  // namespace tandem
