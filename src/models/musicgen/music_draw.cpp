#include "models/musicgen/music_draw.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/draw_bits.h"
#include "nn/draw_weight.h"
#include "tandem/error.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

float largest_of(std::span<const float> scores) {
  float largest = none;
  for (const float score : scores) {
    if (std::isnan(score))
      throw Error(ErrorKind::numeric, "a logit of the model is not a number (NaN)");
    largest = std::max(largest, score);
  }
  if (!std::isfinite(largest))
    throw Error(ErrorKind::numeric, "the logits of the model are not finite");
  return largest;
}

// Weights by code; 0 for those that cannot be drawn.
std::vector<uint32_t> weights_of(std::span<const float> scores, const MusicDrawOptions& options) {
  const auto temperature = static_cast<float>(options.temperature);
  std::vector<float> scaled(scores.begin(), scores.end());
  if (temperature != 1.f)
    for (float& score : scaled) score /= temperature;
  const float largest = largest_of(scaled);
  float least = none;
  const auto k = static_cast<size_t>(options.top_k);
  if (k > 0 && k < scaled.size()) {
    std::vector<float> order = scaled;
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k) - 1, order.end(),
                     std::greater<>());
    least = order[k - 1];
  }
  std::vector<uint32_t> weights(scaled.size());
  uint64_t total = 0;
  for (size_t i = 0; i < scaled.size(); ++i) {
    weights[i] = scaled[i] >= least ? draw_weight(scaled[i] - largest) : 0;
    total += weights[i];
  }
  if (options.top_p >= 1) return weights;
  std::vector<size_t> order(scaled.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scaled[a] > scaled[b]; });
  const double share = options.top_p * static_cast<double>(total);
  uint64_t above = 0;  // weight of all that are strictly likelier
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    uint64_t equal = 0;
    while (end < order.size() && scaled[order[end]] == scaled[order[i]])
      equal += weights[order[end++]];
    const bool stays = i == 0 || static_cast<double>(above) < share;
    for (; i < end; ++i)
      if (!stays) weights[order[i]] = 0;
    above += equal;
  }
  return weights;
}

uint64_t sum_of(const std::vector<uint32_t>& weights) {
  uint64_t sum = 0;
  for (const uint32_t weight : weights) sum += weight;
  return sum;
}

// As transformers' warpers and its draw, operation by operation.
at::Tensor draw_as_hf(at::Tensor scores, const MusicDrawOptions& options,
                      const at::Generator& generator) {
  if (options.temperature != 1) scores = scores / options.temperature;
  if (options.top_k > 0) {
    const int64_t k = std::min(options.top_k, scores.size(1));
    const at::Tensor least = std::get<0>(at::topk(scores, k)).select(1, k - 1).unsqueeze(1);
    scores = scores.masked_fill(scores < least, none);
  }
  if (options.top_p < 1) {
    const auto [sorted, order] = at::sort(scores, 1, /*descending=*/false);
    at::Tensor removed = at::softmax(sorted, 1).cumsum(1) <= 1 - options.top_p;
    removed.select(1, removed.size(1) - 1).fill_(false);
    scores = scores.masked_fill(removed.scatter(1, order, removed), none);
  }
  return at::multinomial(at::softmax(scores, 1), 1, /*replacement=*/false, generator).squeeze(1);
}

}  // namespace

void check_music_draw(const MusicDrawOptions& options) {
  const auto demand = [](bool fits, const char* name, double value, const char* expected) {
    if (fits) return;
    throw Error(ErrorKind::config, fmt::format("{} is {}; expected {}", name, value, expected));
  };
  demand(std::isfinite(options.temperature) && options.temperature > 0, "temperature",
         options.temperature, "a number above 0");
  demand(options.top_p >= 0 && options.top_p <= 1, "top_p", options.top_p, "a share from 0 to 1");
  demand(options.top_k >= 0, "top_k", static_cast<double>(options.top_k),
         "a whole number, 0 for all codes");
  demand(std::isfinite(options.guidance_scale), "guidance_scale", options.guidance_scale,
         "a number; 1 or less: no guidance");
}

uint64_t music_key(uint64_t seed) { return counted_draw(seed, "music", 0, 0); }

at::Tensor guided_scores(const at::Tensor& cond, const at::Tensor& uncond, double guidance) {
  if (!uncond.defined()) return cond;
  return uncond + (cond - uncond) * guidance;
}

int64_t draw_music_code(std::span<const float> scores, const MusicDrawOptions& options,
                        uint64_t bits) {
  if (options.greedy) {
    const float largest = largest_of(scores);
    return std::find(scores.begin(), scores.end(), largest) - scores.begin();
  }
  const std::vector<uint32_t> weights = weights_of(scores, options);
  const uint64_t mark = draw_mark(bits, sum_of(weights));
  uint64_t sum = 0;
  size_t code = 0;
  while ((sum += weights[code]) <= mark) ++code;
  return static_cast<int64_t>(code);
}

std::vector<double> music_chances(std::span<const float> scores, const MusicDrawOptions& options) {
  const std::vector<uint32_t> weights = weights_of(scores, options);
  const auto total = static_cast<double>(sum_of(weights));
  std::vector<double> chances;
  for (const uint32_t weight : weights) chances.push_back(weight / total);
  return chances;
}

MusicDraws MusicDraws::counted(const std::vector<uint64_t>& seeds) {
  MusicDraws draws;
  for (const uint64_t seed : seeds) draws.keys_.push_back(music_key(seed));
  return draws;
}

MusicDraws MusicDraws::hf(uint64_t seed) {
  MusicDraws draws;
  draws.generator_ = at::detail::createCPUGenerator(seed);
  return draws;
}

at::Tensor MusicDraws::operator()(const at::Tensor& scores, const MusicDrawOptions& options,
                                  int64_t step) {
  const int64_t clips = scores.size(0), codebooks = scores.size(1), codes = scores.size(2);
  const at::Tensor rows = scores.reshape({clips * codebooks, codes}).contiguous();
  if (generator_.defined() && !options.greedy)
    return draw_as_hf(rows, options, generator_).view({clips, codebooks});
  at::Tensor drawn = at::empty({clips, codebooks}, at::kLong);
  const float* values = rows.const_data_ptr<float>();
  int64_t* to = drawn.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < clips * codebooks; ++row) {
    const auto number = static_cast<uint64_t>(step * codebooks + row % codebooks);
    const uint64_t bits =
        options.greedy ? 0 : draw_bits(keys_[static_cast<size_t>(row / codebooks)], number);
    to[row] = draw_music_code({values + row * codes, static_cast<size_t>(codes)}, options, bits);
  }
  return drawn;
}

}  // namespace tandem
