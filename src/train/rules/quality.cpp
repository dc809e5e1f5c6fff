#include "train/rules/quality.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "tandem/error.h"

namespace tandem {

namespace {

// dB of a distance between cepstra.
const double decibel_factor = 10 / std::log(10.0) * std::sqrt(2.0);

// Places stop targets take behind the last code.
constexpr int64_t stop_places = 4;

at::Tensor places_of(const at::Tensor& lengths, int64_t count) {
  return at::arange(count, lengths.options().dtype(at::kLong)).unsqueeze(0);
}

}  // namespace

at::Tensor mel_cepstrum(const at::Tensor& log_mels, const CepstrumOptions& options) {
  const int64_t mels = log_mels.size(-2);
  const auto like = log_mels.options().dtype(at::kFloat);
  const at::Tensor orders = at::arange(1, options.coefficients + 1, like).unsqueeze(1);
  const at::Tensor middles = (at::arange(mels, like) + 0.5) * (std::numbers::pi / mels);
  const at::Tensor cosines = at::cos(orders * middles) * (2.0 / (mels * options.power));
  return at::matmul(cosines, log_mels.to(at::kFloat));
}

at::Tensor cepstral_distortion(const at::Tensor& a, const at::Tensor& b, const at::Tensor& lengths,
                               const CepstrumOptions& options) {
  const at::NoGradGuard no_grad;
  const int64_t frames = std::min(a.size(-1), b.size(-1));
  const at::Tensor difference =
      mel_cepstrum(a.narrow(-1, 0, frames) - b.narrow(-1, 0, frames), options);  // it is linear
  const at::Tensor distances = difference.pow(2).sum(1).sqrt();                  // [B, frames]
  const at::Tensor known = lengths.clamp_max(frames);
  const at::Tensor counted = places_of(lengths, frames) < known.unsqueeze(1);
  const at::Tensor sums = at::where(counted, distances, at::zeros_like(distances)).sum(1);
  return sums * decibel_factor / known.clamp_min(1);
}

double warped_cepstral_distortion(const at::Tensor& a, const at::Tensor& b,
                                  const CepstrumOptions& options) {
  if (a.size(-1) == 0 || b.size(-1) == 0)
    throw Error(ErrorKind::internal, "a sound without frames has no cepstral distortion");
  const at::NoGradGuard no_grad;
  const at::Tensor costs = at::cdist(mel_cepstrum(a, options).t().to(at::kDouble),
                                     mel_cepstrum(b, options).t().to(at::kDouble))
                               .cpu()
                               .contiguous();
  const int64_t rows = costs.size(0), columns = costs.size(1);
  const double* cost = costs.const_data_ptr<double>();
  struct Path {
    double cost = std::numeric_limits<double>::infinity();
    int64_t length = 0;
  };
  // Of equally cheap ways the one with both steps at once, then the one along `a`.
  std::vector<Path> before(static_cast<size_t>(columns)), now(before);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const auto place = static_cast<size_t>(j);
      Path best;
      if (i == 0 && j == 0) best = {0, 0};
      if (i > 0 && j > 0) best = before[place - 1];
      if (i > 0 && before[place].cost < best.cost) best = before[place];
      if (j > 0 && now[place - 1].cost < best.cost) best = now[place - 1];
      now[place] = {best.cost + cost[i * columns + j], best.length + 1};
    }
    std::swap(before, now);
  }
  const Path& whole = before.back();
  return decibel_factor * whole.cost / static_cast<double>(whole.length);
}

at::Tensor speaker_similarity(const at::Tensor& a, const at::Tensor& b) {
  return at::cosine_similarity(a.to(at::kFloat), b.to(at::kFloat), 1, 1e-8);
}

at::Tensor count_hits(const at::Tensor& logits, const at::Tensor& targets) {
  const at::NoGradGuard no_grad;
  const at::Tensor counted = targets >= 0;
  const at::Tensor hits = (logits.argmax(1) == targets).logical_and(counted);
  return at::stack({hits.sum(), counted.sum()}).to(at::kFloat);
}

at::Tensor count_codes(const at::Tensor& codes, int64_t size) {
  const at::Tensor flat = codes.reshape({-1});
  const at::Tensor counted = (flat >= 0).to(at::kFloat);
  // Not bincount, which waits for the device to know its size.
  return at::zeros({size}, counted.options()).scatter_add_(0, flat.clamp_min(0), counted);
}

at::Tensor code_usage(const at::Tensor& counts) { return (counts > 0).to(at::kFloat).mean(); }

at::Tensor code_perplexity(const at::Tensor& counts) {
  const at::Tensor total = counts.sum();
  const at::Tensor shares = counts / total.clamp_min(1);
  const at::Tensor entropy = -at::xlogy(shares, shares).sum();
  return at::where(total > 0, entropy.exp(), at::zeros_like(entropy));
}

at::Tensor judge_stops(const at::Tensor& stop, const at::Tensor& code_lengths) {
  const at::NoGradGuard no_grad;
  const at::Tensor ends = code_lengths.to(at::kLong);
  const at::Tensor places = places_of(ends, stop.size(1));
  const at::Tensor known = places < (ends + stop_places).unsqueeze(1);
  const at::Tensor likely = at::where(known, stop, at::zeros_like(stop));
  const at::Tensor reached = (likely >= likely.amax(1, true) / 2).logical_and(known);
  const at::Tensor begins = at::where(reached, places, stop.size(1)).amin(1);
  const at::Tensor counted = ends > 0;
  const at::Tensor late = at::where(counted, begins - ends, at::zeros_like(ends));
  const at::Tensor right = (late.abs() <= 1).logical_and(counted);
  return at::stack({right.sum(), late.sum(), counted.sum()}).to(at::kFloat);
}

}  // namespace tandem
