#include "audio/signal/preemphasis.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "audio/signal/ragged.h"

namespace tandem {

void preemphasise_clip(const float* in, int64_t samples, double coefficient, float* out) {
  if (samples < 1) return;
  const auto factor = static_cast<float>(coefficient);
  out[0] = in[0] - factor * in[samples > 1 ? 1 : 0];
  for (int64_t t = 1; t < samples; ++t) out[t] = in[t] - factor * in[t - 1];
}

Waves preemphasise(const Waves& waves, double coefficient) {
  at::NoGradGuard no_grad;
  check_waves(waves, "preemphasise");
  const at::Tensor in = waves.samples.contiguous();
  const int64_t rows = in.size(0), width = in.size(1);
  Waves out{.lengths = waves.lengths, .sample_rate = waves.sample_rate};
  if (in.is_cpu()) {
    out.samples = at::zeros_like(in);
    const float* source = in.const_data_ptr<float>();
    float* target = out.samples.mutable_data_ptr<float>();
    at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        preemphasise_clip(source + row * width, waves.lengths[static_cast<size_t>(row)],
                          coefficient, target + row * width);
    });
    return out;
  }
  std::vector<int64_t> second;
  for (const int64_t length : waves.lengths) second.push_back(length > 1 ? 1 : 0);
  if (width == 0) {
    out.samples = in;
    return out;
  }
  const at::Tensor before = in.gather(1, row_lengths(second, in.device()).unsqueeze(1));
  out.samples = in - coefficient * at::cat({before, in.slice(1, 0, width - 1)}, 1);
  out.samples.masked_fill_(within_rows(waves.lengths, width, in.device()).logical_not_(), 0);
  return out;
}

}  // namespace tandem
