// The DVAE's codebook while it is trained: not by gradients but by moving averages of the vectors
// that chose each code (VQ-VAE's way). Nothing here waits for the device; shapes are fixed, so all
// of it can be captured.
//
// Dead codes. A code whose share of the vectors falls below `dead_below` of an even share is
// replaced, every `revive_every` steps and at each of the first ones, by a vector of the current
// batch. That is also how a codebook starts: all its codes are dead then, and the first batches
// fill it with vectors of the data.
//
// Which vector? A lottery that does not depend on how replicas share the batch, and needs sums
// alone: each vector draws from (seed, the bits of the mels behind it, step) a dead code it stands
// for and a ticket u in [0, 1), and enters the sums of that code with the weight exp(-16 u load),
// `load` the vectors there are for each dead code. The sum is all but the vector of the smallest
// ticket; every replica divides the same sums and gets the same bits. A code that no vector drew
// waits for the next time.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <vector>

#include "nn/parameters.h"
#include "train/learner.h"

namespace tandem {

struct CodebookOptions {
  double decay = 0.99;
  // A codebook made from nothing follows the encoder, which changes fast at first: step t forgets
  // with (1 + t) / (10 + t) where that is less.
  bool warms_up = true;
  double smoothing = 1e-5;  // Laplace's, on the counts
  // A code nobody chose for long stays where it is. Otherwise smoothing drags it to zero, where it
  // would one day stand for some other sound.
  bool keeps_unused = true;
  int64_t revive_every = 10;  // steps; 0: never
  double dead_below = 0.05;   // of an even share
  double trial = 0.2;         // of an even share: the count a revived code starts with
};

class Codebook {
 public:
  // `embed` [W, K]. Without counts (undefined, or all 0): none when codes are revived, so that all
  // of them are dead; else one for each. `embed_avg` is made to fit unless it is given.
  Codebook(const at::Tensor& embed, const at::Tensor& cluster_size, const at::Tensor& embed_avg,
           const CodebookOptions& options);

  int64_t codes() const { return embed_.size(1); }
  const at::Tensor& embed() const { return embed_; }
  // [N, W] -> [N] int64. `at_once` distances are in memory at most, but those of one vector.
  at::Tensor nearest(const at::Tensor& vectors, int64_t at_once = int64_t{1} << 26) const;
  at::Tensor lookup(const at::Tensor& codes) const;  // [N] -> [N, W]

  // Adds a batch to the step's sums: `real` [N] is 0 for padding, `tickets` [N] int64 tell vectors
  // apart whatever replica holds them, `whole` [] are the real vectors of all replicas.
  struct Chosen {
    at::Tensor vectors, codes, real, tickets, whole;
  };
  void add(const Chosen& chosen, const StepValues& values);
  // Moves the codebook by the sums, revives, and clears them. Sums that are not finite, or empty
  // ones, or those of a step that was not `taken` ([], 0: not) change nothing.
  void update(const StepValues& values, const at::Tensor& taken);

  std::vector<at::Tensor> sums() { return {all_sums_}; }
  NamedTensors buffers();  // under the names of dvae.pth

  at::Tensor dead() const;  // [K] bool

 private:
  at::Tensor smoothed() const;
  void move(const at::Tensor& good, const at::Tensor& step);
  void revive(const at::Tensor& replaced);
  const CodebookOptions options_;
  at::Tensor embed_, cluster_size_, embed_avg_;  // [W, K], [K], [W, K]
  at::Tensor all_sums_;                          // flat; these are views of it:
  at::Tensor counts_, vectors_;                  // [K], [K, W]
  at::Tensor weights_, candidates_;              // the lottery's, [K], [K, W]
};

// The `keep` most used of the codes, by rising index; of equally used ones the first. [keep] int64.
at::Tensor select_codes(const at::Tensor& usage, int64_t keep);

}  // namespace tandem
