#include "audio/signal/resample.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <numbers>
#include <numeric>

#include "audio/signal/device_kernels.h"
#include "audio/signal/lanes.h"
#include "audio/signal/ragged.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr double crossings = 6, rolloff = 0.99;
constexpr int highest_rate = 768'000;
// Pitch shifts by arbitrary amounts ask for ever new pairs.
constexpr size_t kept_tables = 64;

// In float32 and in torchaudio's order: its filter differs from the exact one by up to 1e-5, more
// than results may differ from its own.
void fill_coefficients(ResampleTable& table) {
  const double base = std::min(table.stride, table.phases) * rolloff;
  const at::Tensor phase = at::arange(0, -table.phases, -1).unsqueeze(1).to(at::kFloat) /
                           static_cast<double>(table.phases);
  const at::Tensor first = at::tensor(table.first).unsqueeze(1);
  const at::Tensor place = (first + at::arange(table.taps).unsqueeze(0)).to(at::kFloat) /
                           static_cast<double>(table.stride);
  const at::Tensor t = ((phase + place) * base).clamp(-crossings, crossings);
  const at::Tensor window = at::cos(t * std::numbers::pi / crossings / 2).square();
  const at::Tensor angle = t * std::numbers::pi;
  const at::Tensor sinc = at::where(angle == 0, 1.0, at::sin(angle) / angle);
  const at::Tensor values = (sinc * (window * (base / table.stride))).contiguous();
  table.coefficients.assign(values.const_data_ptr<float>(),
                            values.const_data_ptr<float>() + values.numel());
}

ResampleTable make_table(int from, int to) {
  at::NoGradGuard no_grad;
  const int common = std::gcd(from, to);
  ResampleTable table{.stride = from / common, .phases = to / common};
  const double reach = crossings * table.stride / (std::min(table.stride, table.phases) * rolloff);
  table.taps = (static_cast<int>(2 * reach) + 1 + 7) / 8 * 8;
  for (int phase = 0; phase < table.phases; ++phase)
    table.first.push_back(static_cast<int32_t>(
        std::ceil(static_cast<double>(phase) * table.stride / table.phases - reach)));
  fill_coefficients(table);
  return table;
}

void check_rates(int from, int to) {
  if (from >= 1 && to >= 1 && from <= highest_rate && to <= highest_rate) return;
  throw Error(ErrorKind::data,
              fmt::format("cannot resample from {} Hz to {} Hz: sample rates from 1 "
                          "to {} Hz were expected",
                          from, to, highest_rate));
}

// `out[o]` where the filter may reach over either end of the clip.
float output_at_edge(const ResampleTable& table, const float* in, int64_t samples, int64_t o) {
  const int64_t phase = o % table.phases;
  const int64_t start = o / table.phases * table.stride + table.first[static_cast<size_t>(phase)];
  const float* coefficients = &table.coefficients[static_cast<size_t>(phase * table.taps)];
  const int64_t begin = std::max<int64_t>(0, -start);
  const int64_t end = std::min<int64_t>(table.taps, samples - start);
  float sum = 0;
  for (int64_t k = begin; k < end; ++k) sum += coefficients[k] * in[start + k];
  return sum;
}

void resample_with(const ResampleTable& table, const float* in, int64_t samples, float* out) {
  const int64_t total = (samples * table.phases + table.stride - 1) / table.stride;
  const auto start = [&](int64_t o) {
    return o / table.phases * table.stride + table.first[static_cast<size_t>(o % table.phases)];
  };
  int64_t low = 0, high = total;
  while (low < total && start(low) < 0) out[low] = output_at_edge(table, in, samples, low), ++low;
  while (high > low && start(high - 1) + table.taps > samples)
    --high, out[high] = output_at_edge(table, in, samples, high);
  lanes().resample(table.coefficients.data(), table.first.data(), table.taps, table.stride,
                   table.phases, in, low, high, out);
}

}  // namespace

std::shared_ptr<const ResampleTable> resample_table(int from, int to) {
  check_rates(from, to);
  struct Kept {
    int from, to;
    std::shared_ptr<const ResampleTable> table;
  };
  static std::mutex mutex;
  static std::deque<Kept> kept;
  const auto find = [&]() -> std::shared_ptr<const ResampleTable> {
    for (const Kept& one : kept)
      if (one.from == from && one.to == to) return one.table;
    return nullptr;
  };
  {
    const std::lock_guard lock(mutex);
    if (auto table = find()) return table;
  }
  auto made = std::make_shared<const ResampleTable>(make_table(from, to));
  const std::lock_guard lock(mutex);
  if (auto table = find()) return table;
  kept.push_back({from, to, made});
  if (kept.size() > kept_tables) kept.pop_front();
  return made;
}

int64_t resampled_length(int64_t samples, int from, int to) {
  check_rates(from, to);
  const int64_t common = std::gcd(from, to);
  return (samples * (to / common) + from / common - 1) / (from / common);
}

void resample_clip(const float* in, int64_t samples, int from, int to, float* out) {
  check_rates(from, to);
  if (from == to)
    std::copy_n(in, samples, out);
  else
    resample_with(*resample_table(from, to), in, samples, out);
}

Waves resample(const Waves& waves, int to) {
  check_waves(waves, "resample");
  check_rates(waves.sample_rate, to);
  if (waves.sample_rate == to) return waves;
  const int from = waves.sample_rate;
  Waves out{.sample_rate = to};
  int64_t longest = 0;
  for (const int64_t length : waves.lengths) {
    out.lengths.push_back(resampled_length(length, from, to));
    longest = std::max(longest, out.lengths.back());
  }
  const at::Tensor in = waves.samples.contiguous();
  const int64_t rows = in.size(0);
  const auto table = resample_table(from, to);
  out.samples = at::zeros({rows, longest}, in.options());
#ifdef TANDEM_WITH_CUDA
  if (in.is_cuda()) {
    resample_on_device(*table, in, row_lengths(waves.lengths, in.device()), out.samples,
                       row_lengths(out.lengths, in.device()));
    return out;
  }
#endif
  const float* source = in.const_data_ptr<float>();
  float* target = out.samples.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      resample_with(*table, source + row * in.size(1), waves.lengths[static_cast<size_t>(row)],
                    target + row * longest);
  });
  return out;
}

}  // namespace tandem
