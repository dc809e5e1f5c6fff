// Small DVAEs and batches for the tests of their training.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <memory>

#include "models/xtts_values.h"
#include "train/batches/dvae_batches.h"
#include "train/stages/dvae_learner.h"

namespace tandem::tests {

struct DvaeShape {
  int64_t mels = 80, hidden = 12, width = 12, codes = 48, blocks = 3;
};

inline Dvae made_dvae(const DvaeShape& shape = {}, double codebook = 0.3) {
  Dvae from;
  from.encoder.size = {.mels = shape.mels,
                       .widths = {shape.hidden, 2 * shape.hidden},
                       .blocks = shape.blocks,
                       .vector = shape.width,
                       .codes = shape.codes};
  NamedWeights named;
  from.list("", into(named));
  named["codebook.embed"] *= codebook;
  Weights weights(named);
  return Dvae::load(weights, "");
}

// Rows of `lengths` frames in a batch of `frames`; mels beyond are filled with 7, which nobody may
// read. Each row's mels depend on `name` and on `first` + its place.
inline Batch dvae_batch(const std::string& name, const std::vector<int64_t>& lengths,
                        int64_t frames, int64_t whole, int64_t first = 0, int64_t mels = 80) {
  const auto rows = static_cast<int64_t>(lengths.size());
  Batch batch{.rows = rows, .whole_rows = rows};
  at::Tensor all = at::full({rows, mels, frames}, 7.0);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t own = lengths[static_cast<size_t>(row)];
    const std::string row_name = name + " " + std::to_string(first + row);
    all[row].slice(1, 0, own).copy_(values(row_name, {mels, own}, 2, -1));
  }
  batch.fields = {all, at::tensor(lengths), at::full({rows, 1}, static_cast<double>(whole))};
  return batch;
}

inline StepValues step_values(int64_t step, double scale = 1) {
  return {.step = at::scalar_tensor(step, at::kLong),
          .scale = at::scalar_tensor(scale),
          .seed = 5,
          .run_seed = 5};
}

// What the optimizer says of a step.
inline at::Tensor taken(bool was = true) { return at::scalar_tensor(was ? 1.0 : 0.0); }

// Zeroes in place of missing gradients, as the loop makes them.
inline void clear_gradients(Learner& learner) {
  for (Phase& phase : learner.phases())
    for (TrainedTensor& trained : phase.tensors)
      trained.tensor->mutable_grad() = at::zeros_like(*trained.tensor);
}

inline void descend(Learner& learner, double rate) {
  const at::NoGradGuard no_grad;
  for (Phase& phase : learner.phases())
    for (TrainedTensor& trained : phase.tensors) trained.tensor->sub_(trained.tensor->grad(), rate);
}

inline std::map<std::string, at::Tensor> gradients_of(Learner& learner) {
  std::map<std::string, at::Tensor> out;
  for (Phase& phase : learner.phases())
    for (TrainedTensor& trained : phase.tensors) out[trained.name] = trained.tensor->grad().clone();
  return out;
}

inline at::Tensor find_weight(Learner& learner, const std::string& name) {
  for (const Phase& phase : learner.phases())
    for (const TrainedTensor& trained : phase.tensors)
      if (trained.name == name) return trained.tensor->detach();
  return {};
}

inline at::Tensor buffer_of(Learner& learner, const std::string& name) {
  for (const auto& [found, tensor] : learner.buffers())
    if (found == "codebook." + name) return tensor;
  return {};
}

}  // namespace tandem::tests
