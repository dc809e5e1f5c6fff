#include "nn/gpt_step/step_ops_cpu.h"

#include <ATen/ATen.h>

#include <cmath>

namespace tandem {
namespace {

constexpr double epsilon = 1e-5;

// [B, T, groups, channels] of [B T, D], and which frames are real: [B, T, 1, 1].
at::Tensor grouped(const at::Tensor& x, const StepFrames& frames, int64_t groups) {
  return x.view({frames.rows, frames.places, groups, x.size(1) / groups});
}
at::Tensor real_frames(const at::Tensor& x, const StepFrames& frames) {
  const at::Tensor place = at::arange(frames.places, frames.lengths.options());
  return (place.unsqueeze(0) < frames.lengths.unsqueeze(1))
      .to(x.scalar_type())
      .view({frames.rows, frames.places, 1, 1});
}

// One sequence of [places, heads, width], heads first.
at::Tensor sequence(const at::Tensor& x, const at::Tensor& starts, int64_t index) {
  const int64_t begin = starts[index].item<int64_t>(), end = starts[index + 1].item<int64_t>();
  return x.narrow(0, begin, end - begin).transpose(0, 1);
}
at::Tensor shares(const at::Tensor& queries, const at::Tensor& keys) {
  const double scale = 1 / std::sqrt(static_cast<double>(queries.size(2)));
  return at::softmax(at::matmul(queries, keys.transpose(1, 2)) * scale, -1);
}

}  // namespace

void cpu_multiply(const StepProduct& p) {
  at::Tensor result =
      at::matmul(p.left_turned ? p.left.t() : p.left, p.right_turned ? p.right.t() : p.right);
  if (p.bias.defined()) result = result + p.bias;
  if (p.added.defined()) result = result + p.added;
  p.adds ? p.out.add_(result) : p.out.copy_(result);
}

void cpu_norm(const at::Tensor& x, const StepFrames& frames, const at::Tensor& weight,
              const at::Tensor& bias, const at::Tensor& out, const at::Tensor& statistics) {
  const int64_t groups = statistics.size(1);
  const at::Tensor real = real_frames(x, frames), in = grouped(x, frames, groups);
  const at::Tensor count = (frames.lengths * in.size(3)).view({-1, 1, 1, 1});
  const at::Tensor mean = (in * real).sum({1, 3}, true) / count;
  const at::Tensor centred = (in - mean) * real;
  const at::Tensor rate = at::rsqrt(centred.square().sum({1, 3}, true) / count + epsilon);
  statistics.copy_(at::stack({mean, rate}, -1).view(statistics.sizes()));
  const at::Tensor normed = (centred * rate).view({frames.rows, frames.places, x.size(1)});
  out.copy_(((normed * weight + bias) * real.squeeze(3)).view(out.sizes()));
}

void cpu_norm_backward(const at::Tensor& gradient, const at::Tensor& x, const StepFrames& frames,
                       const at::Tensor& weight, const at::Tensor& statistics,
                       const at::Tensor& x_gradient, const at::Tensor& partial) {
  const int64_t groups = statistics.size(1), width = x.size(1);
  const at::Tensor real = real_frames(x, frames);
  const auto of = [&](int64_t which) {
    return statistics.select(2, which).view({frames.rows, 1, groups, 1});
  };
  const at::Tensor normed = (grouped(x, frames, groups) - of(0)) * of(1) * real;
  const at::Tensor flow = grouped(gradient, frames, groups) * real;
  const at::Tensor weighted = flow * weight.view({1, 1, groups, width / groups});
  const at::Tensor count = (frames.lengths * (width / groups)).view({-1, 1, 1, 1});
  const at::Tensor by_mean = weighted.sum({1, 3}, true) / count;
  const at::Tensor by_rate = (weighted * normed).sum({1, 3}, true) / count;
  const at::Tensor out = (weighted - by_mean - normed * by_rate) * of(1) * real;
  x_gradient.copy_(out.view(x_gradient.sizes()));
  const auto sum = [&](const at::Tensor& values) {
    return values.sum(1).view({frames.rows, width});
  };
  partial.copy_(at::stack({sum(flow * normed), sum(flow), sum(out)}, 1));
}

void cpu_attend(const at::Tensor& qkv, const at::Tensor& starts, const at::Tensor& out) {
  out.copy_(cpu_read(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), starts, starts));
}

void cpu_attend_backward(const at::Tensor& gradient, const at::Tensor& qkv,
                         const at::Tensor& starts, const at::Tensor& qkv_gradient) {
  const auto parts = cpu_read_backward(gradient, qkv.select(2, 0), qkv.select(2, 1),
                                       qkv.select(2, 2), starts, starts);
  qkv_gradient.copy_(at::stack(parts, 2));
}

at::Tensor cpu_read(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                    const at::Tensor& query_starts, const at::Tensor& key_starts) {
  at::Tensor out = at::empty(queries.sizes(), queries.options());
  for (int64_t i = 0; i + 1 < query_starts.size(0); ++i) {
    const at::Tensor q = sequence(queries, query_starts, i);
    sequence(out, query_starts, i)
        .copy_(
            at::matmul(shares(q, sequence(keys, key_starts, i)), sequence(values, key_starts, i)));
  }
  return out;
}

std::vector<at::Tensor> cpu_read_backward(const at::Tensor& gradient, const at::Tensor& queries,
                                          const at::Tensor& keys, const at::Tensor& values,
                                          const at::Tensor& query_starts,
                                          const at::Tensor& key_starts) {
  const std::vector<at::Tensor> out = {at::zeros(queries.sizes(), queries.options()),
                                       at::zeros(keys.sizes(), keys.options()),
                                       at::zeros(values.sizes(), values.options())};
  const double scale = 1 / std::sqrt(static_cast<double>(queries.size(2)));
  for (int64_t i = 0; i + 1 < query_starts.size(0); ++i) {
    const at::Tensor q = sequence(queries, query_starts, i), k = sequence(keys, key_starts, i),
                     v = sequence(values, key_starts, i), g = sequence(gradient, query_starts, i);
    const at::Tensor share = shares(q, k), slope = at::matmul(g, v.transpose(1, 2));
    const at::Tensor score = share * (slope - (share * slope).sum(-1, true)) * scale;
    sequence(out[0], query_starts, i).copy_(at::matmul(score, k));
    sequence(out[1], key_starts, i).copy_(at::matmul(score.transpose(1, 2), q));
    sequence(out[2], key_starts, i).copy_(at::matmul(share.transpose(1, 2), g));
  }
  return out;
}

}  // namespace tandem
