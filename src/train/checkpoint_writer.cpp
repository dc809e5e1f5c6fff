#include "train/checkpoint_writer.h"

#include "device/logical_device.h"

namespace tandem {

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CheckpointWriter::save(Replica& replica, std::function<void(Checkpoint)> write) {
  wait();
  replica.copy_to(snapshot_);
  const Event copied = replica.device().compute_stream().record();
  thread_ = std::thread([this, copied, &replica, write = std::move(write)] {
    try {
      copied.synchronize();
      write(replica.checkpoint(snapshot_));
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

}  // namespace tandem
