// Collectives among ranks, one rank a device. The same calls whatever carries them; here
// in-process, for the simulated, split or real devices of one process. Other carriers implement
// this interface.
//
// Every rank calls the same collectives in the same order. A call returns at once; `Work::wait`
// makes the result usable on the caller's device. Sums are taken in rank order, so all ranks get
// the same bits, and the same bits every time. A rank that does not arrive within the timeout fails
// the collective on all the others with Error(peer) that names it; after that the group is dead and
// every call fails the same way.
//
// A collective starts after what the device's compute stream holds on CUDA; elsewhere tensor
// operations have run when they return, and work given to Stream::run must be synchronised first.
#pragma once

#include <ATen/core/TensorBody.h>

#include <chrono>
#include <memory>
#include <vector>

namespace tandem {

class LogicalDevice;

class Work {
 public:
  virtual ~Work() = default;
  virtual void wait() = 0;  // throws what the collective threw
  virtual bool done() const = 0;
};

enum class Reduce { sum, mean };

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // In place. Same shape and type on every rank.
  virtual std::shared_ptr<Work> all_reduce(at::Tensor tensor, Reduce op) = 0;
  // `tensor` of `root` into `tensor` of every rank.
  virtual std::shared_ptr<Work> broadcast(at::Tensor tensor, int root) = 0;
  // `tensor` of every rank, in rank order, into `out` on `root` only. `out` must live until wait.
  virtual std::shared_ptr<Work> gather(at::Tensor tensor, std::vector<at::Tensor>& out,
                                       int root) = 0;
  virtual void barrier() = 0;

  // Many small tensors in few collectives: packed into buckets of about `bucket_bytes` (one type a
  // bucket), each reduced while the next is being packed, and unpacked. Returns when all are
  // usable.
  void all_reduce_bucketed(const std::vector<at::Tensor>& tensors, Reduce op, size_t bucket_bytes);
};

// One communicator a device, rank = position. They may outlive each other; one that is destroyed
// while the others still work counts as a rank that left.
std::vector<std::unique_ptr<Communicator>> make_in_process_group(
    const std::vector<LogicalDevice*>& devices, std::chrono::milliseconds timeout);

}  // namespace tandem
