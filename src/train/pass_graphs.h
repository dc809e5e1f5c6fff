// Work of a step, captured once for each shape and replayed: one launch instead of thousands. Off
// CUDA, and where capturing is off, work simply runs.
//
// The first time a shape comes its work runs as it is (libraries make their work spaces then), the
// second time it is captured. What is captured reads and writes fixed addresses: a batch is copied
// into the shape's own tensors first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/feed/batch.h"

namespace tandem {

class LogicalDevice;

class PassGraphs {
 public:
  PassGraphs(LogicalDevice& device, bool enabled);
  ~PassGraphs();

  // One shape's state: its inputs at fixed addresses, and its captured pieces.
  struct Shape;
  // `extra` tells apart what the fields' shapes do not. The batch to work on: `batch` itself while
  // its work runs as it is, the shape's own copy of it afterwards.
  Shape& begin(const Batch& batch, int64_t extra);
  const Batch& inputs(const Shape& shape, const Batch& batch) const;
  bool passed(const Shape& shape) const;    // once before, whole
  bool replays(const Shape& shape) const;   // captured by now, or this time
  bool captured(const Shape& shape) const;  // by now

  // Runs `work` as piece `piece` of this shape: as it is, captured and replayed, or replayed. What
  // it returns is at the same address each time it is replayed.
  at::Tensor run(Shape& shape, size_t piece, const std::function<at::Tensor()>& work);
  // Once all pieces of the pass ran.
  void end(Shape& shape);

  int64_t captures() const { return captures_; }
  int64_t unsettled() const { return unsettled_; }  // passes of shapes on their way to a graph
  void forget();                                    // all shapes, and their memory

 private:
  std::string key(const Batch& batch, int64_t extra) const;
  LogicalDevice& device_;
  const bool enabled_;
  int64_t captures_ = 0, unsettled_ = 0;
  std::map<std::string, std::unique_ptr<Shape>> shapes_;
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace tandem
