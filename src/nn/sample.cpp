#include "nn/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/draw_bits.h"
#include "tandem/error.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

struct Candidate {
  int64_t code;
  float score;
};

bool likelier(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.code < b.code;
}

std::vector<Candidate> penalised(std::span<const float> logits, const std::vector<bool>& seen,
                                 double penalty) {
  std::vector<Candidate> scores(logits.size());
  const auto factor = static_cast<float>(penalty);
  for (size_t i = 0; i < logits.size(); ++i) {
    float score = logits[i];
    if (seen[i]) score = score < 0 ? score * factor : score / factor;
    scores[i] = {static_cast<int64_t>(i), score};
  }
  return scores;
}

}  // namespace

void check_sampling(const SampleOptions& options) {
  const auto demand = [](bool fits, const char* name, double value, const char* expected) {
    if (fits) return;
    throw Error(ErrorKind::config, fmt::format("{} is {}; expected {}", name, value, expected));
  };
  const auto positive = [](double x) { return std::isfinite(x) && x > 0; };
  demand(positive(options.temperature), "temperature", options.temperature, "a number above 0");
  demand(positive(options.repetition_penalty), "repetition_penalty", options.repetition_penalty,
         "a number above 0");
  demand(options.top_p >= 0 && options.top_p <= 1, "top_p", options.top_p, "a share from 0 to 1");
  demand(options.top_k >= 0, "top_k", static_cast<double>(options.top_k),
         "a whole number, 0 for all codes");
}

uint64_t draw_key(uint64_t seed) { return counted_draw(seed, "codes", 0, 0); }

double draw_unit(uint64_t key, uint64_t step) {
  return static_cast<double>(draw_bits(key, step) >> 40) * 0x1p-24;
}

std::vector<CodeChance> code_chances(std::span<const float> logits, const std::vector<bool>& seen,
                                     const SampleOptions& options) {
  std::vector<Candidate> kept = penalised(logits, seen, options.repetition_penalty);
  for (Candidate& candidate : kept) candidate.score /= static_cast<float>(options.temperature);
  const auto k = static_cast<size_t>(options.top_k);
  if (k > 0 && k < kept.size()) {
    std::nth_element(kept.begin(), kept.begin() + static_cast<int64_t>(k) - 1, kept.end(),
                     likelier);
    const float least = kept[k - 1].score;
    std::erase_if(kept, [&](const Candidate& candidate) { return candidate.score < least; });
  }
  std::sort(kept.begin(), kept.end(), likelier);
  std::vector<CodeChance> chances(kept.size());
  double total = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const double weight = std::exp(static_cast<double>(kept[i].score) - kept.front().score);
    chances[i] = {kept[i].code, weight};
    total += weight;
  }
  // A code stays while those likelier than it hold less than top_p together.
  double held = 0;
  size_t count = 0;
  while (count < chances.size() && (count == 0 || held < options.top_p * total))
    held += chances[count++].chance;
  chances.resize(count);
  for (CodeChance& code : chances) code.chance /= held;
  return chances;
}

int64_t sample_code(std::span<const float> logits, const std::vector<bool>& seen,
                    const SampleOptions& options, double draw) {
  if (options.greedy) {
    const auto scores = penalised(logits, seen, options.repetition_penalty);
    return std::min_element(scores.begin(), scores.end(), likelier)->code;
  }
  const std::vector<CodeChance> chances = code_chances(logits, seen, options);
  double left = draw;
  for (const CodeChance& code : chances) {
    if (left < code.chance) return code.code;
    left -= code.chance;
  }
  return chances.back().code;
}

}  // namespace tandem
