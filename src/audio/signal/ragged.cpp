#include "audio/signal/ragged.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem {

void check_waves(const Waves& waves, std::string_view work) {
  const auto wrong = [&](const std::string& what) {
    return Error(ErrorKind::internal, fmt::format("{} was given waves {}", work, what));
  };
  if (!waves.samples.defined() || waves.samples.dim() != 2 ||
      waves.samples.scalar_type() != at::kFloat)
    throw wrong("that are not a float32 tensor [rows, samples]");
  if (static_cast<int64_t>(waves.lengths.size()) != waves.samples.size(0))
    throw wrong(
        fmt::format("of {} rows with {} lengths", waves.samples.size(0), waves.lengths.size()));
  for (const int64_t length : waves.lengths)
    if (length < 0 || length > waves.samples.size(1))
      throw wrong(
          fmt::format("with a row of {} samples in {} places", length, waves.samples.size(1)));
  if (waves.sample_rate < 1) throw wrong(fmt::format("at {} Hz", waves.sample_rate));
}

at::Tensor row_lengths(const std::vector<int64_t>& lengths, const at::Device& device) {
  return at::tensor(lengths, at::kLong).to(device, /*non_blocking=*/true);
}

at::Tensor within_rows(const std::vector<int64_t>& lengths, int64_t width,
                       const at::Device& device) {
  return at::arange(width, at::TensorOptions(device).dtype(at::kLong)).unsqueeze(0) <
         row_lengths(lengths, device).unsqueeze(1);
}

Waves cut(const Waves& waves, const std::vector<int64_t>& starts, std::vector<int64_t> lengths,
          int64_t width) {
  const at::Tensor in = waves.samples.contiguous();
  const int64_t rows = in.size(0);
  Waves out{.lengths = std::move(lengths), .sample_rate = waves.sample_rate};
  if (in.is_cpu()) {
    out.samples = at::zeros({rows, width}, in.options());
    const float* source = in.const_data_ptr<float>();
    float* target = out.samples.mutable_data_ptr<float>();
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(source + row * in.size(1) + starts[static_cast<size_t>(row)],
                  out.lengths[static_cast<size_t>(row)], target + row * width);
    return out;
  }
  if (in.size(1) == 0 || width == 0) {
    out.samples = at::zeros({rows, width}, in.options());
    return out;
  }
  const at::Tensor places = at::arange(width, in.options().dtype(at::kLong)).unsqueeze(0) +
                            row_lengths(starts, in.device()).unsqueeze(1);
  out.samples = in.gather(1, places.clamp_max_(in.size(1) - 1))
                    .masked_fill_(within_rows(out.lengths, width, in.device()).logical_not_(), 0);
  return out;
}

}  // namespace tandem
