// What is diagnosed: batches, the devices they go to, and a step that uses them. A training is one
// (training_subject.h); tests plant their bottlenecks in others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/feed/feed.h"

namespace tandem {

class Subject {
 public:
  virtual ~Subject() = default;

  virtual BatchMaker& batches() = 0;
  virtual LogicalDevice& data_device() = 0;
  virtual std::vector<LogicalDevice*> models() = 0;
  virtual FeedOptions feeding() const = 0;
  virtual int batches_a_step() const { return 1; }

  // Called before the steps of one rank by itself, and before those of all ranks together, each on
  // a thread of its own.
  virtual void work_alone(int /*rank*/) {}
  virtual void work_together() {}
  // Queues a step of this rank on its device. `next` gives its batches, valid until the next call.
  using NextBatch = std::function<const Batch*()>;
  virtual void step(int rank, const NextBatch& next) = 0;
  // A rank that failed does not come to collectives any more.
  virtual void gave_up(int /*rank*/) {}

  // Whether a step goes on after `step` returns, in the device's compute stream.
  virtual bool queues_work() = 0;
  // Steps so far that ran as they are, or were captured, on their way to a graph that is replayed.
  virtual int64_t unsettled(int /*rank*/) const { return 0; }
  virtual int64_t parts() const { return 1; }  // a batch is worked on in, for lack of memory
  // Eager debugging looks at every tensor; false: there is none to turn off.
  virtual bool turn_debugging(bool /*on*/) { return false; }

  // Files of the dataset, and the bytes of one batch on disk; empty and 0: not known.
  virtual std::vector<std::string> files() { return {}; }
  virtual double bytes_read_a_batch() { return 0; }
};

}  // namespace tandem
