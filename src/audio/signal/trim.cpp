#include "audio/signal/trim.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "audio/signal/ragged.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr double silence = 1e-10;  // mean square: -100 dBFS

void check(const TrimOptions& o) {
  if (o.frame >= 1 && o.hop >= 1 && o.margin >= 0 && o.top_db > 0) return;
  throw Error(
      ErrorKind::config,
      fmt::format("silence cannot be trimmed with frames of {}, a hop of {}, a margin of {} "
                  "and {} dB: a frame and hop of at least 1, no negative margin and more "
                  "than 0 dB were expected",
                  o.frame, o.hop, o.margin, o.top_db));
}

// From the first and the last frame that is not silent.
Span span_of(int64_t first, int64_t last, int64_t samples, const TrimOptions& o) {
  return {std::clamp<int64_t>(first * o.hop - o.margin, 0, samples),
          std::clamp<int64_t>((last + 1) * o.hop + o.margin, 0, samples)};
}

double threshold(double peak, const TrimOptions& o) { return peak * std::pow(10, -o.top_db / 10); }

// Frame t is centred on sample t * hop; zeros stand before and behind the row.
std::vector<Span> find_on_device(const Waves& waves, const TrimOptions& o) {
  const at::Tensor in = waves.samples;
  const int64_t rows = in.size(0), width = in.size(1);
  const auto whole = in.options().dtype(at::kLong);
  const at::Tensor sums =
      at::constant_pad_nd(in.to(at::kDouble).square().cumsum(1), {1, 0});  // [B, T + 1]
  const at::Tensor begin = at::arange(width / o.hop + 1, whole) * o.hop - o.frame / 2;
  const at::Tensor energy = (sums.index_select(1, (begin + o.frame).clamp_(0, width)) -
                             sums.index_select(1, begin.clamp(0, width))) /
                            static_cast<double>(o.frame);
  std::vector<int64_t> frames;
  for (const int64_t length : waves.lengths) frames.push_back(length / o.hop + 1);
  const at::Tensor own =
      energy.masked_fill(within_rows(frames, energy.size(1), in.device()).logical_not_(), 0);
  const at::Tensor peak = own.amax(1, true);
  const at::Tensor loud =
      at::logical_and(own.clamp_min(silence) > peak * std::pow(10, -o.top_db / 10), peak > silence)
          .logical_and_(within_rows(frames, energy.size(1), in.device()));
  const at::Tensor place = at::arange(energy.size(1), whole);
  const at::Tensor ends = at::stack({at::where(loud, place, energy.size(1)).amin(1),
                                     at::where(loud, place, -1).amax(1)})
                              .cpu();
  std::vector<Span> spans;
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = ends[0][row].item<int64_t>(), last = ends[1][row].item<int64_t>();
    spans.push_back(last < 0 ? Span{}
                             : span_of(first, last, waves.lengths[static_cast<size_t>(row)], o));
  }
  return spans;
}

}  // namespace

Span find_sound(const float* in, int64_t samples, const TrimOptions& o) {
  check(o);
  if (samples < 1) return {};
  std::vector<double> sums(static_cast<size_t>(samples + 1));
  for (int64_t t = 0; t < samples; ++t)
    sums[static_cast<size_t>(t + 1)] =
        sums[static_cast<size_t>(t)] + static_cast<double>(in[t]) * in[t];
  const int64_t frames = samples / o.hop + 1;
  const auto energy = [&](int64_t frame) {
    const int64_t begin = frame * o.hop - o.frame / 2;
    const auto upto = [&](int64_t t) {
      return sums[static_cast<size_t>(std::clamp<int64_t>(t, 0, samples))];
    };
    return (upto(begin + o.frame) - upto(begin)) / static_cast<double>(o.frame);
  };
  double peak = 0;
  for (int64_t frame = 0; frame < frames; ++frame) peak = std::max(peak, energy(frame));
  if (!(peak > silence)) return {};
  const double least = threshold(peak, o);
  int64_t first = 0, last = frames - 1;
  while (first < last && !(std::max(energy(first), silence) > least)) ++first;
  while (last > first && !(std::max(energy(last), silence) > least)) --last;
  return span_of(first, last, samples, o);
}

Trimmed trim_silence(const Waves& waves, const TrimOptions& options) {
  at::NoGradGuard no_grad;
  check_waves(waves, "trim_silence");
  check(options);
  const at::Tensor in = waves.samples.contiguous();
  const auto rows = static_cast<size_t>(in.size(0));
  std::vector<Span> spans(rows);
  if (!in.is_cpu()) {
    if (in.numel() > 0) spans = find_on_device(waves, options);
  } else {
    const float* source = in.const_data_ptr<float>();
    at::parallel_for(0, in.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const auto r = static_cast<size_t>(row);
        spans[r] = find_sound(source + row * in.size(1), waves.lengths[r], options);
      }
    });
  }
  Trimmed trimmed;
  std::vector<int64_t> lengths;
  for (size_t row = 0; row < rows; ++row) {
    trimmed.starts.push_back(spans[row].begin);
    lengths.push_back(spans[row].end - spans[row].begin);
    if (lengths.back() == 0) trimmed.silent.push_back(static_cast<int64_t>(row));
  }
  const int64_t width = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  trimmed.waves = cut(waves, trimmed.starts, std::move(lengths), width);
  return trimmed;
}

Waves trim_ends(const Waves& waves, const TrimOptions& options) {
  Trimmed trimmed = trim_silence(waves, options);
  if (trimmed.silent.empty()) return std::move(trimmed.waves);
  std::vector<int64_t> lengths = trimmed.waves.lengths;
  for (const int64_t row : trimmed.silent) {
    trimmed.starts[static_cast<size_t>(row)] = 0;
    lengths[static_cast<size_t>(row)] = waves.lengths[static_cast<size_t>(row)];
  }
  const int64_t width = *std::max_element(lengths.begin(), lengths.end());
  return cut(waves, trimmed.starts, std::move(lengths), width);
}

}  // namespace tandem
