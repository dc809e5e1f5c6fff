// The trained tensors of one phase in few flat buffers: weights, gradients, moments, moving
// average. One kernel updates all of them, one collective reduces any run of them, and a checkpoint
// is a handful of copies.
#pragma once

#include <optional>
#include <vector>

#include "nn/adamw.h"
#include "train/learner.h"

namespace tandem {

class ParameterStore {
 public:
  // Takes over the tensors: each becomes a view with the same values, on `device` or that of the
  // open DeviceScope. `average`: a moving average of the weights is kept too.
  // `half_gradients`: gradients of tensors that may be kept in bfloat16 are.
  ParameterStore(const std::vector<TrainedTensor>& tensors, bool average,
                 std::optional<at::Device> device = std::nullopt, bool half_gradients = false);

  const std::vector<TrainedView>& views() const { return views_; }
  const std::vector<AdamWBuffers>& arenas() const { return arenas_; }
  int64_t count() const { return count_; }  // trained numbers, padding not counted

  // Gradients of tensors [first, end), flat, at most one tensor an arena.
  std::vector<at::Tensor> gradients(size_t first, size_t end) const;
  std::vector<at::Tensor> gradients() const { return gradients(0, places_.size()); }
  // Those of tensors [0, end) become numbers that are none: a step with them is left out. What lies
  // between the tensors stays, as it is never written again.
  void spoil_gradients(size_t end) const;
  void spoil_gradients() const { spoil_gradients(places_.size()); }

  // Everything a checkpoint keeps, copied to the host: page-locked buffers of its own that the next
  // snapshot overwrites. Queued on the current stream; usable when that has run.
  struct Snapshot {
    std::vector<AdamWBuffers> arenas;
  };
  void copy_to(Snapshot& snapshot) const;
  NamedTensors weights(const Snapshot& snapshot) const;  // float32
  NamedTensors average(const Snapshot& snapshot) const;  // empty: none is kept
  NamedTensors moments(const Snapshot& snapshot) const;  // "<name>.mean", "<name>.square"

  // By name; throws Error(corrupt) that lists what does not fit. `what` names the file. A moving
  // average that the file lacks starts at the weights.
  void load(const NamedTensors& weights, const NamedTensors& moments, const NamedTensors& average,
            const std::string& what);

  // Trades weights for their moving average and back, exactly, for validation and samples.
  void swap_average();
  bool has_average() const { return average_; }

 private:
  struct Place {
    size_t arena;
    int64_t offset, count;
  };
  at::Tensor slice(const at::Tensor& flat, size_t index) const;
  NamedTensors named(const Snapshot& snapshot, at::Tensor AdamWBuffers::*member,
                     const std::string& suffix) const;

  std::vector<Place> places_;
  std::vector<AdamWBuffers> arenas_;
  std::vector<TrainedView> views_;
  int64_t count_ = 0;
  bool average_ = false;
};

}  // namespace tandem
