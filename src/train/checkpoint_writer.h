// Writes checkpoints beside the training: a snapshot is copied from the device, and a thread of its
// own brings it to the disk. One at a time; the next one waits until the last is safe.
#pragma once

#include <exception>
#include <functional>
#include <thread>

#include "checkpoint/run_folder.h"
#include "train/replica.h"

namespace tandem {

class CheckpointWriter {
 public:
  ~CheckpointWriter();

  // Queues the copies on the replica's stream and returns; `write` runs on the writer's thread with
  // what was copied. Throws what the writing before it threw.
  void save(Replica& replica, std::function<void(Checkpoint checkpoint)> write);
  // Until everything is on the disk; throws what went wrong.
  void wait();

 private:
  Replica::Snapshot snapshot_;
  std::thread thread_;
  std::exception_ptr failure_;
};

}  // namespace tandem
