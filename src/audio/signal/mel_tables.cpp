#include "audio/signal/mel_tables.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <mutex>
#include <numbers>

#include "tandem/error.h"

namespace tandem {
namespace {

constexpr double pi = std::numbers::pi;

void check(const MelOptions& o) {
  const auto wrong = [](const std::string& what) {
    return Error(ErrorKind::config, "a mel front end cannot have " + what);
  };
  if (o.n_fft < 16 || o.n_fft > 65536 || !std::has_single_bit(static_cast<unsigned>(o.n_fft)))
    throw wrong(fmt::format("n_fft {}: a power of two from 16 to 65536 was expected", o.n_fft));
  if (o.hop < 1 || o.hop > o.n_fft)
    throw wrong(fmt::format("a hop of {}: 1 to n_fft ({}) was expected", o.hop, o.n_fft));
  if (o.window_length < 1 || o.window_length > o.n_fft)
    throw wrong(
        fmt::format("a window of {}: 1 to n_fft ({}) was expected", o.window_length, o.n_fft));
  if (o.mels < 1 || o.mels > 1024)
    throw wrong(fmt::format("{} mels: 1 to 1024 were expected", o.mels));
  if (!(o.f_min >= 0 && o.f_min < o.f_max && o.f_max <= o.sample_rate))
    throw wrong(fmt::format("{} to {} Hz: 0 <= f_min < f_max <= sample rate was expected", o.f_min,
                            o.f_max));
  if (o.power != 1 && o.power != 2)
    throw wrong(fmt::format("power {}: 1 or 2 was expected", o.power));
  if (!(o.clamp + o.add >= 1e-30))
    throw wrong("neither `clamp` nor `add`: silence would be minus infinity");
}

std::vector<float> make_window(const MelOptions& o) {
  std::vector<float> window(static_cast<size_t>(o.n_fft));
  const double mean = o.window == WindowShape::hann ? 0.5 : 0.54;
  const int left = (o.n_fft - o.window_length) / 2;
  for (int i = 0; i < o.window_length; ++i)
    window[static_cast<size_t>(left + i)] =
        static_cast<float>(mean - (1 - mean) * std::cos(2 * pi * i / o.window_length));
  return window;
}

// Largest radices last: their blocks then fill the nearest cache.
std::vector<int> radices(int points, int largest) {
  std::vector<int> found;
  int left = std::countr_zero(static_cast<unsigned>(points));
  if (largest == 8)
    for (; left % 3 != 0 && left >= 2; left -= 2) found.push_back(4);
  else if (left % 2 != 0 && left >= 3)
    left -= 3, found.push_back(8);
  const int step = largest == 8 ? 3 : 2;
  for (; left >= step; left -= step) found.push_back(1 << step);
  if (left > 0) found.push_back(1 << left);
  return found;
}

void plan_fft(MelTables& t) {
  FftPlan& fft = t.plan.fft;
  fft.points = t.options.n_fft / 2;
  const std::vector<int> radix = radices(fft.points, t.lanes->radix);
  fft.passes = static_cast<int>(radix.size());
  t.twiddles.resize(radix.size());
  int block = fft.points;
  for (size_t pass = 0; pass < radix.size(); ++pass) {
    const int r = fft.radix[pass] = radix[pass];
    for (int j = 0; j < block / r; ++j)
      for (int m = 1; m < r; ++m) {
        t.twiddles[pass].push_back(static_cast<float>(std::cos(2 * pi * j * m / block)));
        t.twiddles[pass].push_back(static_cast<float>(-std::sin(2 * pi * j * m / block)));
      }
    fft.twiddles[pass] = t.twiddles[pass].data();
    block /= r;
  }
  for (int k = 0; k < fft.points; ++k) {
    int rest = k, part = fft.points, position = 0;
    for (const int r : radix) {
      part /= r;
      position += rest % r * part;
      rest /= r;
    }
    t.position.push_back(position);
  }
  fft.position = t.position.data();
}

void plan_filters(MelTables& t) {
  const at::Tensor filters = mel_filters(t.options).t().contiguous();
  const int64_t bins = filters.size(1);
  for (int64_t m = 0; m < filters.size(0); ++m) {
    const float* row = filters.const_data_ptr<float>() + m * bins;
    int64_t first = 0, end = bins;
    while (first < bins && row[first] == 0) ++first;
    while (end > first && row[end - 1] == 0) --end;
    if (first == end) first = end = 0;
    t.first_bin.push_back(static_cast<int32_t>(first));
    t.bin_count.push_back(static_cast<int32_t>(end - first));
    t.weights.insert(t.weights.end(), row + first, row + end);
  }
}

std::shared_ptr<const MelTables> make_tables(const MelOptions& o, const Lanes& lanes) {
  check(o);
  auto made = std::make_shared<MelTables>();
  MelTables& t = *made;
  t.options = o;
  t.lanes = &lanes;
  t.window = make_window(o);
  for (const float w : t.window) t.half_window.push_back(0.5f * w);
  for (int k = 0; k <= o.n_fft / 4; ++k) {
    t.turn.push_back(static_cast<float>(std::cos(2 * pi * k / o.n_fft)));
    t.turn.push_back(static_cast<float>(std::sin(2 * pi * k / o.n_fft)));
  }
  const int columns = lanes.width + (o.n_fft - 1) / o.hop, row = (columns + 3) / 4 * 4;
  for (int n = 0; n < o.n_fft; ++n) t.offset.push_back(n % o.hop * row + n / o.hop);
  plan_fft(t);
  plan_filters(t);
  t.plan = {.fft = t.plan.fft,
            .n_fft = o.n_fft,
            .hop = o.hop,
            .mels = o.mels,
            .magnitude = o.power == 1,
            .columns = columns,
            .row = row,
            .offset = t.offset.data(),
            .window = t.half_window.data(),
            .turn = t.turn.data(),
            .first_bin = t.first_bin.data(),
            .bin_count = t.bin_count.data(),
            .weights = t.weights.data(),
            .clamp = static_cast<float>(o.clamp),
            .add = static_cast<float>(o.add)};
  return made;
}

}  // namespace

std::shared_ptr<const MelTables> mel_tables(const MelOptions& options, const Lanes& lanes) {
  static std::mutex mutex;
  static std::vector<std::shared_ptr<const MelTables>> kept;
  const std::lock_guard lock(mutex);
  for (const auto& tables : kept)
    if (tables->options == options && tables->lanes == &lanes) return tables;
  kept.push_back(make_tables(options, lanes));
  return kept.back();
}

}  // namespace tandem
