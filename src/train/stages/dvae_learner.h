// What the DVAE's stage trains on one device: encoder and decoder by gradients (straight through
// the quantiser), the codebook by moving averages. Batches are those of batches/dvae_batches.h.
//
//   loss = mean square of what the mels (divided by mel_stats) lack, over real frames
//        + commitment * mean square distance of the encoder's vectors to their codes
#pragma once

#include <optional>

#include "models/xtts/dvae.h"
#include "train/learner.h"
#include "train/stages/codebook.h"
#include "train/stages/dvae_ragged.h"

namespace tandem {

struct DvaeLearnerOptions {
  double commitment = 0.25;
  at::ScalarType compute = at::kFloat;  // what convolutions multiply in
  double beta1 = 0.9, beta2 = 0.96, largest_norm = 1;
  CodebookOptions codebook;
};

class DvaeLearner final : public Learner {
 public:
  // `dvae` is on the learner's device, its encoder with mel_stats; the learner's own from now on.
  DvaeLearner(Dvae dvae, const DvaeLearnerOptions& options);

  std::vector<Phase> phases() override;
  std::vector<std::string> terms() const override;
  at::Tensor add_gradients(size_t phase, const Batch& batch, const StepValues& values) override;
  NamedTensors buffers() override { return codebook_.buffers(); }
  std::vector<at::Tensor> sums() override { return codebook_.sums(); }
  void finish_step(const StepValues& values, const at::Tensor& taken) override {
    codebook_.update(values, taken);
  }

  // loss, reconstruction, commitment; mel_distance: mean difference of the mels in dB.
  std::vector<std::string> measures() const override;
  Measured validate(const Batch& batch) override;
  // How often each code was chosen; of that perplexity and codes_used (0..1).
  int64_t tally() const override { return codebook_.codes(); }
  std::vector<std::pair<std::string, double>> read_tally(const at::Tensor& all) const override;

  // [B, mels, F] log mels as the front end gives them, lengths [B] -> the same after the codebook.
  at::Tensor reconstruct(const at::Tensor& log_mels, const at::Tensor& lengths) const;
  // One clip [mels, F], from and to the CPU; waits for the device.
  at::Tensor reconstruct(const at::Tensor& log_mels) const;

 private:
  struct Pass {
    DvaeMasks masks;       // of the weights' type
    at::Tensor scaled;     // [B, mels, F]
    at::Tensor mels;       // [B, mels, F], what came back
    at::Tensor vectors;    // [B * T, width] the encoder's
    at::Tensor codes;      // [B * T]
    at::Tensor real;       // [B * T] 1, 0 for padding
    at::Tensor squares;    // [] sum over mels and real frames
    at::Tensor distances;  // [] sum over width and real vectors
  };
  Pass pass(const at::Tensor& log_mels, const at::Tensor& lengths) const;
  at::Tensor tickets(const at::Tensor& log_mels) const;

  Dvae dvae_;
  const DvaeLearnerOptions options_;
  Codebook codebook_;
  at::Tensor ticket_factors_;  // [mels, frames of a code] int64
};

}  // namespace tandem
