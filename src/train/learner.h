// What a stage trains, on one device: its model and its losses. The loop around it (replicas,
// optimizers, captured steps, checkpoints) knows nothing else. Driven by one thread, under the
// DeviceScope of its device.
//
// A step has one phase, or several that follow each other (discriminator, generator), each with
// parameters and an optimizer of its own. For every batch of a step and every phase the loop calls
// add_gradients; then it sums the gradients over the replicas, clips, and updates the phase.
//
// No call may wait for the device (`item`, copies to the host): a step is queued whole, and on a
// GPU it is captured once for each shape of its batch and replayed from then on. So what changes
// from step to step without being in the batch must be read from tensors that stay where they are.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string>
#include <utility>
#include <vector>

#include "data/feed/batch.h"
#include "nn/parameters.h"

namespace tandem {

// A tensor of the model that is trained. The loop replaces it by a view of its own storage, with
// the same values; its gradient is added up in `tensor->grad()`, which is there from the start.
struct TrainedTensor {
  std::string name;
  at::Tensor* tensor = nullptr;
  bool decays = true;  // weight decay
  // Kept in bfloat16 with the 16 bits that float32 has more beside it, for code that multiplies in
  // bfloat16 and adds gradients in float32 by itself: its gradient is TrainedView::gradient then,
  // not `grad()`. Only in precision bf16 on a GPU.
  bool split = false;
  // Of a split one: a product writes its gradient whole. The loop keeps it in bfloat16 then, where
  // nothing is added to it but by a batch that had to be halved: no accumulation, no replicas.
  bool half_gradient = false;
};

struct Phase {
  std::string name;
  std::vector<TrainedTensor> tensors;
  double learning_rate = 1;          // times the run's
  double beta1 = 0.9, beta2 = 0.95;  // of AdamW
  double largest_norm = 1;           // gradients are clipped to it; 0: never
};

// Where the loop put a trained tensor.
struct TrainedView {
  std::string name;
  at::Tensor weight;    // float32, or bfloat16 of a split one
  at::Tensor gradient;  // float32, or bfloat16 of one with half_gradient; same shape
};

// What changes from step to step, on the device, at fixed addresses.
struct StepValues {
  at::Tensor step;     // [] int64, the number of this step, from 1
  int64_t number = 0;  // the same on the host: only for what Learner::pass_of tells apart
  at::Tensor scale;   // [] float32: losses are multiplied by it before the backward pass; 1 but for
                      // fp16
  uint64_t seed = 0;  // of this replica: for masks that follow a number's place in its batch
  uint64_t run_seed = 0;  // of all: for draws that must not depend on how replicas share a batch
  bool first = false;  // of a step's batches: gradients of split tensors must be overwritten, for
                       // nobody clears them
};

// Sums over samples with what they must be divided by, so that parts of replicas and batches add
// up.
struct Measured {
  at::Tensor sums, counts;  // [measures()] float32 on the device
  at::Tensor tally;         // [tally()] likewise; undefined where there is none
};

class Learner {
 public:
  virtual ~Learner() = default;

  virtual std::vector<Phase> phases() = 0;
  // After the loop took over the tensors of phases(), in that order.
  virtual void placed(const std::vector<std::vector<TrainedView>>&) {}

  // Names of what add_gradients returns; the first is the loss that is shown and watched.
  virtual std::vector<std::string> terms() const = 0;

  // Adds the gradients of this replica's part of a batch, as shares of the whole batch's: those of
  // all replicas sum to the gradient of the whole. Returns the terms of this phase, as shares
  // likewise, [terms()] float32 on the device, 0 where another phase gives them.
  virtual at::Tensor add_gradients(size_t phase, const Batch& batch, const StepValues& values) = 0;

  // A phase's gradients may come in pieces that follow each other, so that the reduction over the
  // replicas starts while the rest is computed: after piece k the gradients of all tensors from
  // `final_from(phase, k)` on are final. add_gradients of such a learner does all of them.
  virtual int pieces(size_t) const { return 1; }
  virtual size_t final_from(size_t /*phase*/, int /*piece*/) const { return 0; }
  virtual at::Tensor add_piece(size_t phase, int /*piece*/, const Batch& batch,
                               const StepValues& values) {
    return add_gradients(phase, batch, values);
  }

  // Tells batches and steps apart that have the same shapes but need another pass: it is captured
  // for each.
  virtual int64_t pass_of(const Batch&, const StepValues&) const { return 0; }

  // Tensors beside the trained ones that belong to a checkpoint and to the checksum: running
  // statistics, a codebook. Changed in place only.
  virtual NamedTensors buffers() { return {}; }
  // Of what a pass works on and a step leaves for the next; 0 where it comes and goes with the
  // pass.
  virtual uint64_t pass_bytes() const { return 0; }
  // What replicas must add up for finish_step, filled by add_gradients: sums over their samples.
  virtual std::vector<at::Tensor> sums() { return {}; }
  // Once a step, after all phases were updated; `sums()` are those of all replicas then. Clears
  // them. `taken` [] float32: 0 where a phase was left out, and nothing may change.
  virtual void finish_step(const StepValues&, const at::Tensor& /*taken*/) {}

  // Without gradients, on this replica's part of a validation batch.
  virtual std::vector<std::string> measures() const = 0;  // the first is the validation loss
  virtual Measured validate(const Batch& batch) = 0;
  // Numbers added up over the whole validation, for measures that are no means: how often each code
  // was chosen. What they tell, by name, of the sum on the CPU.
  virtual int64_t tally() const { return 0; }
  virtual std::vector<std::pair<std::string, double>> read_tally(const at::Tensor& /*all*/) const {
    return {};
  }
};

}  // namespace tandem
