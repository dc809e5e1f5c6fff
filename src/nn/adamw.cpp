#include "nn/adamw.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "nn/adamw_cell.h"
#include "nn/adamw_launch.h"
#include "tandem/error.h"

namespace tandem {
namespace {

AdamWNumbers numbers(const at::Tensor& values, const AdamWRule& rule) {
  const float* v = values.const_data_ptr<float>();
  return {.learning_rate = v[adamw_learning_rate],
          .correction1 = v[adamw_correction1],
          .correction2_root = std::sqrt(v[adamw_correction2]),
          .factor = v[adamw_factor],
          .beta1 = static_cast<float>(rule.beta1),
          .beta2 = static_cast<float>(rule.beta2),
          .epsilon = static_cast<float>(rule.epsilon),
          .weight_decay = static_cast<float>(rule.weight_decay),
          .average_decay = v[adamw_average]};
}

uint16_t* halves(const at::Tensor& tensor) {
  return reinterpret_cast<uint16_t*>(tensor.mutable_data_ptr());
}

void step_on_cpu(const AdamWBuffers& b, const AdamWNumbers& n) {
  const bool split = b.low.defined();
  const at::Tensor full = b.gradient.to(at::kFloat);
  const auto* gradient = full.const_data_ptr<float>();
  float *mean = b.mean.mutable_data_ptr<float>(), *square = b.square.mutable_data_ptr<float>();
  const uint8_t* decays = b.decays.const_data_ptr<uint8_t>();
  float* weight = split ? nullptr : b.weight.mutable_data_ptr<float>();
  uint16_t* high = split ? halves(b.weight) : nullptr;
  int16_t* low = split ? b.low.mutable_data_ptr<int16_t>() : nullptr;
  float* average = b.average.defined() ? b.average.mutable_data_ptr<float>() : nullptr;
  at::parallel_for(0, b.gradient.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float before = split ? join_halves(high[i], low[i]) : weight[i];
      const AdamWCell cell =
          adamw_cell({before, mean[i], square[i]}, gradient[i], decays[i / adamw_chunk] != 0, n);
      mean[i] = cell.mean;
      square[i] = cell.square;
      if (split) {
        high[i] = high_half(cell.weight);
        low[i] = low_half(cell.weight, high[i]);
      } else {
        weight[i] = cell.weight;
      }
      if (average) average[i] += (1 - n.average_decay) * (cell.weight - average[i]);
    }
  });
}

[[maybe_unused]] void need_cuda() {
  throw Error(ErrorKind::internal, "this build has no CUDA, but a tensor is on a GPU");
}

}  // namespace

void adamw_step(const AdamWBuffers& buffers, const at::Tensor& values, const AdamWRule& rule) {
  if (buffers.gradient.numel() == 0) return;
  if (buffers.gradient.is_cuda()) {
#ifdef TANDEM_WITH_CUDA
    return adamw_step_cuda(buffers, values, rule);
#else
    need_cuda();
#endif
  }
  if (values.const_data_ptr<float>()[adamw_good] != 0) step_on_cpu(buffers, numbers(values, rule));
  at::Tensor gradient = buffers.gradient;
  if (!buffers.low.defined()) gradient.zero_();
}

void split_float(const at::Tensor& full, at::Tensor& high, at::Tensor& low) {
  if (full.is_cuda()) {
#ifdef TANDEM_WITH_CUDA
    return split_float_cuda(full, high, low);
#else
    need_cuda();
#endif
  }
  const at::Tensor from = full.contiguous();
  const auto* value = from.const_data_ptr<float>();
  uint16_t* up = halves(high);
  auto* down = low.mutable_data_ptr<int16_t>();
  for (int64_t i = 0; i < from.numel(); ++i) {
    up[i] = high_half(value[i]);
    down[i] = low_half(value[i], up[i]);
  }
}

at::Tensor join_float(const at::Tensor& high, const at::Tensor& low) {
  at::Tensor full = at::empty(high.sizes(), high.options().dtype(at::kFloat));
  if (high.is_cuda()) {
#ifdef TANDEM_WITH_CUDA
    join_float_cuda(high, low, full);
#else
    need_cuda();
#endif
    return full;
  }
  auto* value = full.mutable_data_ptr<float>();
  const uint16_t* up = halves(high);
  const auto* down = low.const_data_ptr<int16_t>();
  for (int64_t i = 0; i < full.numel(); ++i) value[i] = join_halves(up[i], down[i]);
  return full;
}

}  // namespace tandem
