#include "audio/signal/mel.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "audio/signal/device_kernels.h"
#include "audio/signal/mel_tables.h"
#include "audio/signal/preemphasis.h"
#include "audio/signal/ragged.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr double standardise_eps = 1e-5;

// Memory of a thread that only grows, aligned for the widest lanes.
float* scratch(int64_t floats) {
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<float, Free> memory;
  thread_local int64_t size = 0;
  if (size < floats) {
    const auto bytes = static_cast<size_t>((floats + 15) / 16 * 16) * sizeof(float);
    memory.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    size = memory ? floats : 0;
    if (!memory) throw Error(ErrorKind::memory, "no memory is left for a mel spectrogram");
  }
  return memory.get();
}

void standardise_rows(float* mels, int64_t rows, int64_t frames, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row) {
    float* values = mels + row * stride;
    double sum = 0, squares = 0;
    for (int64_t f = 0; f < frames; ++f) sum += values[f];
    const double mean = sum / static_cast<double>(frames);
    for (int64_t f = 0; f < frames; ++f) squares += (values[f] - mean) * (values[f] - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(frames) + standardise_eps);
    for (int64_t f = 0; f < frames; ++f) values[f] = static_cast<float>((values[f] - mean) * scale);
  }
}

#ifdef TANDEM_WITH_CUDA
at::Tensor standardised(const at::Tensor& mels, const at::Tensor& frames) {
  const at::Tensor within =
      (at::arange(mels.size(2), frames.options()).view({1, 1, -1}) < frames.view({-1, 1, 1}));
  const at::Tensor count = frames.clamp_min(1).view({-1, 1, 1});
  const at::Tensor mean = mels.sum(2, true, at::kDouble) / count;
  const at::Tensor centred = (mels - mean).masked_fill_(within.logical_not(), 0);
  const at::Tensor variance = centred.square().sum(2, true) / count;
  return (centred / at::sqrt(variance + standardise_eps)).to(at::kFloat);
}

at::Tensor mel_by_device(const Waves& waves, const MelOptions& options,
                         const std::vector<int64_t>& own_frames, int64_t longest,
                         const at::Tensor& mel_stats) {
  const auto tables = mel_tables(options, lanes());
  const at::Tensor in = waves.samples.contiguous();
  const auto put = [&](const auto& values) {
    return at::tensor(values).to(in.device(), /*non_blocking=*/true);
  };
  std::vector<int32_t> start(1, 0);
  for (const int32_t count : tables->bin_count) start.push_back(start.back() + count);
  const DeviceMel mel{.first = put(tables->first_bin),
                      .count = put(tables->bin_count),
                      .start = put(start),
                      .weights = put(tables->weights),
                      .magnitude = options.power == 1,
                      .clamp = static_cast<float>(options.clamp),
                      .add = static_cast<float>(options.add)};
  const at::Tensor frames = at::empty({in.size(0), longest, options.n_fft}, in.options());
  frames_on_device(in, row_lengths(waves.lengths, in.device()), put(tables->window), options.hop,
                   frames);
  const at::Tensor spectrum = at::view_as_real(at::fft_rfft(frames)).contiguous();
  const at::Tensor out = at::zeros({in.size(0), options.mels, longest}, in.options());
  const at::Tensor row_frames = row_lengths(own_frames, in.device());
  const at::Tensor divisor =
      mel_stats.defined() ? mel_stats.to(in.device(), at::kFloat).contiguous() : at::Tensor();
  mel_on_device(mel, spectrum, row_frames, divisor, out);
  return options.standardise ? standardised(out, row_frames) : out;
}
#endif

}  // namespace

int64_t mel_frames(int64_t samples, const MelOptions& options) {
  return samples < 1 ? 0 : 1 + samples / options.hop;
}

void plain_mel_clip(const MelTables& tables, const float* in, int64_t samples, int64_t frames,
                    float* out, int64_t stride, const float* mel_stats) {
  const Lanes& simd = *tables.lanes;
  MelPlan plan = tables.plan;
  plan.divisor = mel_stats;
  const int64_t reach = static_cast<int64_t>(plan.columns) * plan.hop, width = simd.width;
  const int64_t reach_aligned = (reach + 15) / 16 * 16, tail_size = plan.mels * width;
  float* memory = scratch(simd.scratch(plan) + reach_aligned + tail_size);
  float* segment = memory + simd.scratch(plan);
  float* tail = segment + reach_aligned;
  for (int64_t frame = 0; frame < frames; frame += width) {
    const int64_t begin = frame * plan.hop - plan.n_fft / 2, left = std::min(width, frames - frame);
    const bool inside = begin >= 0 && begin + reach <= samples;
    if (!inside)
      for (int64_t i = 0; i < reach; ++i) segment[i] = in[reflected(begin + i, samples)];
    const float* from = inside ? in + begin : segment;
    if (left == width) {
      simd.mel(plan, from, memory, out + frame, stride);
      continue;
    }
    simd.mel(plan, from, memory, tail, width);
    for (int64_t m = 0; m < plan.mels; ++m)
      std::copy_n(tail + m * width, left, out + m * stride + frame);
  }
}

void log_mel_clip(const float* in, int64_t samples, const MelOptions& options, int64_t frames,
                  float* out, int64_t stride, const float* mel_stats) {
  const auto tables = mel_tables(options, lanes());
  std::vector<float> emphasised;
  if (options.preemphasis != 0 && samples > 0) {
    emphasised.resize(static_cast<size_t>(samples));
    preemphasise_clip(in, samples, options.preemphasis, emphasised.data());
    in = emphasised.data();
  }
  const int64_t own = mel_frames(samples, options);
  frames = std::min(frames, own);
  if (!options.standardise || frames == own) {
    plain_mel_clip(*tables, in, samples, frames, out, stride, mel_stats);
    if (options.standardise) standardise_rows(out, options.mels, frames, stride);
    return;
  }
  std::vector<float> whole(static_cast<size_t>(options.mels * own));  // the mean is the clip's
  plain_mel_clip(*tables, in, samples, own, whole.data(), own, mel_stats);
  standardise_rows(whole.data(), options.mels, own, own);
  for (int64_t m = 0; m < options.mels; ++m)
    std::copy_n(whole.data() + m * own, frames, out + m * stride);
}

at::Tensor log_mel(const Waves& waves, const MelOptions& options, int64_t frames,
                   const at::Tensor& mel_stats) {
  at::NoGradGuard no_grad;
  check_waves(waves, "log_mel");
  mel_tables(options, lanes());  // refuses options that make no sense
  if (waves.sample_rate != options.sample_rate)
    throw Error(ErrorKind::internal,
                fmt::format("log_mel was given waves at {} Hz for a front end of {} Hz",
                            waves.sample_rate, options.sample_rate));
  if (mel_stats.defined() && mel_stats.numel() != options.mels)
    throw Error(ErrorKind::data, fmt::format("mel_stats hold {} values for {} mels",
                                             mel_stats.numel(), options.mels));
  std::vector<int64_t> own;
  int64_t longest = 0;
  for (const int64_t length : waves.lengths) {
    own.push_back(mel_frames(length, options));
    longest = std::max(longest, own.back());
  }
  if (frames < 0) frames = longest;
  const at::Tensor in = waves.samples.contiguous();
#ifdef TANDEM_WITH_CUDA
  if (in.is_cuda()) {
    if (longest == 0) return at::zeros({in.size(0), options.mels, frames}, in.options());
    const Waves source =
        options.preemphasis == 0 ? waves : preemphasise(waves, options.preemphasis);
    const at::Tensor mels = mel_by_device(source, options, own, longest, mel_stats);
    return frames <= longest ? mels.slice(2, 0, frames).contiguous()
                             : at::constant_pad_nd(mels, {0, frames - longest});
  }
#endif
  const at::Tensor stats = mel_stats.defined() ? mel_stats.to(at::kFloat).contiguous() : mel_stats;
  const float* divisor = stats.defined() ? stats.const_data_ptr<float>() : nullptr;
  const at::Tensor out = at::empty({in.size(0), options.mels, frames}, in.options());
  const float* source = in.const_data_ptr<float>();
  float* target = out.mutable_data_ptr<float>();
  at::parallel_for(0, in.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto r = static_cast<size_t>(row);
      float* to = target + row * options.mels * frames;
      const int64_t filled = std::min(frames, own[r]);
      log_mel_clip(source + row * in.size(1), waves.lengths[r], options, filled, to, frames,
                   divisor);
      for (int64_t m = 0; m < options.mels; ++m)
        std::fill(to + m * frames + filled, to + (m + 1) * frames, 0.0f);
    }
  });
  return out;
}

}  // namespace tandem
