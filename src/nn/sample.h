// The next code from its logits: repetition penalty, temperature, top-k, top-p, draw, in that order
// and by the rules of Hugging Face's generate(). Greedy takes the likeliest after the penalty.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

struct SampleOptions {
  double temperature = 1;         // above 0
  int64_t top_k = 0;              // all that are as likely as the k-th; 0: all
  double top_p = 1;               // the likeliest that hold this share together, one at least
  double repetition_penalty = 1;  // above 0; of codes seen before
  bool greedy = false;
};

// Throws Error(config) that names the option when one has no meaning.
void check_sampling(const SampleOptions& options);

// What a seed draws with, and draw number `step` of it: in [0, 1).
uint64_t draw_key(uint64_t seed);
double draw_unit(uint64_t key, uint64_t step);

// `seen` has an entry a code; `draw` is in [0, 1). Codes are taken in the order of their
// likelihood, equal ones in the order of their number.
int64_t sample_code(std::span<const float> logits, const std::vector<bool>& seen,
                    const SampleOptions& options, double draw);

// Codes that may be drawn with their chances, which add up to 1, likeliest first.
struct CodeChance {
  int64_t code = 0;
  double chance = 0;
};
std::vector<CodeChance> code_chances(std::span<const float> logits, const std::vector<bool>& seen,
                                     const SampleOptions& options);

}  // namespace tandem
