#include "nn/gpt_step/step_ops.h"

#include <ATen/ATen.h>

#include <cmath>

#include "nn/gpt_step/step_ops_cpu.h"
#include "tandem/error.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraphsUtils.cuh>

#include <set>
#include <tuple>

#include "nn/gpt_step/gpt_attention.h"
#include "nn/gpt_step/gpt_kernels.h"
#include "nn/gpt_step/gpt_products.h"
#endif

namespace tandem {
namespace {

// [a0, b0, a1, b1, …, end] int32.
at::Tensor alternating(const at::Tensor& first, const at::Tensor& second, int64_t end) {
  const at::Tensor both = at::stack({first, second}, 1).flatten();
  return at::cat({both, at::full({1}, end, both.options())}).to(at::kInt);
}

at::Tensor begins(int64_t rows, int64_t places, const at::Tensor& like) {
  return at::arange(0, rows * places, places, like.options());
}

#ifdef TANDEM_WITH_CUDA
bf16* half_of(const at::Tensor& tensor) { return static_cast<bf16*>(tensor.data_ptr()); }

Product product_of(const StepProduct& p) {
  Product product;
  product.left = p.left.const_data_ptr();
  product.right = p.right.const_data_ptr();
  product.out = p.out.data_ptr();
  product.rows = p.out.size(0);
  product.columns = p.out.size(1);
  product.inner = p.left.size(p.left_turned ? 0 : 1);
  product.left_turned = p.left_turned;
  product.right_turned = p.right_turned;
  product.left_stride = p.left.stride(0);
  product.right_stride = p.right.stride(0);
  product.out_stride = p.out.stride(0);
  product.to_float = p.out.scalar_type() == at::kFloat;
  product.adds = p.adds;
  product.added = p.added.defined() ? p.added.const_data_ptr() : nullptr;
  product.bias = p.bias.defined() ? p.bias.const_data_ptr() : nullptr;
  return product;
}

FrameNormCall norm_call(const at::Tensor& x, const StepFrames& frames, const at::Tensor& weight,
                        const at::Tensor& statistics) {
  FrameNormCall call;
  call.x = half_of(x);
  call.lengths = frames.lengths.const_data_ptr<int64_t>();
  call.weight = half_of(weight);
  call.statistics = reinterpret_cast<float2*>(statistics.data_ptr<float>());
  call.rows = static_cast<int>(frames.rows);
  call.frames = static_cast<int>(frames.places);
  call.width = static_cast<int>(x.size(1));
  call.channels = static_cast<int>(x.size(1) / statistics.size(1));
  return call;
}

SumJob job_of(const at::Tensor& parts, const at::Tensor& out) {
  return {.partial = parts.const_data_ptr<float>(),
          .out = out.data_ptr<float>(),
          .parts = static_cast<int>(parts.size(0)),
          .columns = static_cast<int>(out.numel()),
          .stride = parts.stride(0)};
}

// [places, heads, 3, width] seen as GptAttention wants it.
at::Tensor by_kind(const at::Tensor& qkv) { return qkv.transpose(1, 2); }
#endif

}  // namespace

at::Tensor StepFrames::starts(int64_t before) const {
  const int64_t row = places + before;
  const at::Tensor first = begins(rows, row, lengths);
  return alternating(first, first + lengths + before, rows * row);
}

struct StepOps::Parts {
  bool measures = false;
#ifdef TANDEM_WITH_CUDA
  using Form = std::tuple<int64_t, int64_t, bool, bool, bool, bool, bool>;
  std::unique_ptr<Products> products;  // none on the CPU
  std::set<Form> met;

  void measure(const StepProduct& p) {
    const Product product = product_of(p);
    // Of sizes that follow the batch one is measured.
    const int64_t fixed = product.left_turned ? product.rows : product.inner;
    const Form form{product.columns,        fixed,
                    product.left_turned,    product.right_turned,
                    product.to_float,       product.adds || product.added,
                    product.bias != nullptr};
    if (at::cuda::currentStreamCaptureStatusMayInitCtx() != at::cuda::CaptureStatus::None ||
        !met.insert(form).second)
      return;
    StepProduct tried = p;
    tried.out = at::zeros_like(p.out);
    products->tune(product_of(tried), at::cuda::getCurrentCUDAStream());
  }
#endif
};

StepOps::StepOps(const at::Device& device, bool measures) : parts_(std::make_unique<Parts>()) {
  parts_->measures = measures;
  if (!device.is_cuda()) return;
#ifdef TANDEM_WITH_CUDA
  parts_->products = std::make_unique<Products>();
#else
  throw Error(ErrorKind::device, "a fused training step needs a GPU; this build has no CUDA");
#endif
}
StepOps::~StepOps() = default;

void StepOps::multiply(const StepProduct& p) {
#ifdef TANDEM_WITH_CUDA
  if (parts_->products) {
    if (parts_->measures) parts_->measure(p);
    return parts_->products->run(product_of(p), at::cuda::getCurrentCUDAStream());
  }
#endif
  cpu_multiply(p);
}

void StepOps::norm(const at::Tensor& x, const StepFrames& frames, const at::Tensor& weight,
                   const at::Tensor& bias, const at::Tensor& out, const at::Tensor& statistics) {
#ifdef TANDEM_WITH_CUDA
  if (parts_->products) {
    FrameNormCall call = norm_call(x, frames, weight, statistics);
    call.bias = half_of(bias);
    call.out = half_of(out);
    return launch_frame_norm(call, at::cuda::getCurrentCUDAStream());
  }
#endif
  cpu_norm(x, frames, weight, bias, out, statistics);
}

void StepOps::norm_backward(const at::Tensor& gradient, const at::Tensor& x,
                            const StepFrames& frames, const at::Tensor& weight,
                            const at::Tensor& statistics, const at::Tensor& x_gradient,
                            const at::Tensor& partial) {
#ifdef TANDEM_WITH_CUDA
  if (parts_->products) {
    FrameNormBackwardCall call;
    call.norm = norm_call(x, frames, weight, statistics);
    call.gradient = half_of(gradient);
    call.x_gradient = half_of(x_gradient);
    call.partial = partial.data_ptr<float>();
    return launch_frame_norm_backward(call, at::cuda::getCurrentCUDAStream());
  }
#endif
  cpu_norm_backward(gradient, x, frames, weight, statistics, x_gradient, partial);
}

StepOps::Attended StepOps::attention_of(const StepFrames& frames, [[maybe_unused]] int64_t heads,
                                        [[maybe_unused]] int64_t width) {
  Attended memory{
      .starts = frames.starts(), .logsumexp = {}, .longest = frames.places, .kernels = {}};
#ifdef TANDEM_WITH_CUDA
  if (parts_->products) {
    const int64_t places = frames.rows * frames.places;
    auto kernels = std::make_shared<GptAttention>(heads, width, places, 2 * frames.rows,
                                                  /*causal=*/false);
    kernels->begin({memory.starts, memory.longest}, places, at::cuda::getCurrentCUDAStream());
    memory.kernels = kernels;
  }
#endif
  return memory;
}

void StepOps::attend(const at::Tensor& qkv, const at::Tensor& out, Attended& memory) {
#ifdef TANDEM_WITH_CUDA
  if (parts_->products) {
    memory.logsumexp = at::empty({qkv.size(1), qkv.size(0)}, qkv.options().dtype(at::kFloat));
    static_cast<GptAttention*>(memory.kernels.get())
        ->forward(by_kind(qkv), {memory.starts, memory.longest}, out, memory.logsumexp,
                  at::cuda::getCurrentCUDAStream());
    return;
  }
#endif
  cpu_attend(qkv, memory.starts, out);
}

void StepOps::attend_backward(const at::Tensor& gradient, const at::Tensor& qkv,
                              const at::Tensor& out, const Attended& memory,
                              const at::Tensor& qkv_gradient, const at::Tensor& bias_gradient,
                              bool overwrites) {
#ifdef TANDEM_WITH_CUDA
  if (parts_->products) {
    const auto stream = at::cuda::getCurrentCUDAStream();
    auto& kernels = *static_cast<GptAttention*>(memory.kernels.get());
    const PackedSequences sequences{memory.starts, memory.longest};
    const at::Tensor dots = at::empty_like(memory.logsumexp);
    kernels.backward(gradient, by_kind(qkv), out, memory.logsumexp, sequences,
                     by_kind(qkv_gradient), dots, stream);
    if (kernels.own_kernels()) {
      const auto sums = kernels.bias_parts(sequences, qkv.size(0));
      const int columns = static_cast<int>(out.size(1) * out.size(2)), width = 64;
      float* to = bias_gradient.data_ptr<float>();
      SumJobs jobs;
      jobs.overwrite = overwrites;
      const auto add = [&](const float* partial, int parts, int kind) {
        jobs.job[jobs.count++] = {.partial = partial,
                                  .out = to + kind * width,
                                  .parts = parts,
                                  .columns = columns,
                                  .stride = columns,
                                  .spread = 3 * width};
      };
      add(sums.query, sums.query_parts, 0);
      add(nullptr, 0, 1);  // the keys' is zero
      add(sums.value, sums.value_parts, 2);
      return launch_finish_sums(jobs, stream);
    }
    return sum_rows(qkv_gradient.flatten(1), bias_gradient, overwrites);
  }
#endif
  cpu_attend_backward(gradient, qkv, memory.starts, qkv_gradient);
  sum_rows(qkv_gradient.flatten(1), bias_gradient, overwrites);
  (void)out;
}

StepOps::Read StepOps::read(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const StepFrames& frames) {
  Read memory;
  const int64_t each = queries.size(0) / frames.rows;
  const at::Tensor first = begins(frames.rows, each, frames.lengths);
  memory.query_starts = alternating(first, first + each, queries.size(0));
  memory.key_starts = frames.starts(each);
  memory.most_queries = each;
  memory.most_keys = each + frames.places;
#ifdef TANDEM_WITH_CUDA
  if (parts_->products) {
    auto [out, sums, state, unused, mask] = at::_flash_attention_forward(
        queries, keys, values, memory.query_starts, memory.key_starts, memory.most_queries,
        memory.most_keys, 0.0, /*is_causal=*/false, false);
    memory.out = out;
    memory.logsumexp = sums;
    memory.state[0] = state;
    memory.state[1] = unused;
    return memory;
  }
#endif
  memory.out = cpu_read(queries, keys, values, memory.query_starts, memory.key_starts);
  return memory;
}

std::vector<at::Tensor> StepOps::read_backward(const at::Tensor& gradient,
                                               const at::Tensor& queries, const at::Tensor& keys,
                                               const at::Tensor& values, const Read& memory) {
#ifdef TANDEM_WITH_CUDA
  if (parts_->products) {
    const DeterministicScope deterministic;
    const auto [q, k, v] = at::_flash_attention_backward(
        gradient, queries, keys, values, memory.out, memory.logsumexp, memory.query_starts,
        memory.key_starts, memory.most_queries, memory.most_keys, 0.0, /*is_causal=*/false,
        memory.state[0], memory.state[1]);
    return {q, k, v};
  }
#endif
  return cpu_read_backward(gradient, queries, keys, values, memory.query_starts, memory.key_starts);
}

void StepOps::sum_rows(const at::Tensor& matrix, const at::Tensor& out, bool overwrites) {
#ifdef TANDEM_WITH_CUDA
  if (parts_->products && matrix.scalar_type() == at::kBFloat16) {
    const at::Tensor partial = at::empty({column_parts, matrix.size(1)}, out.options());
    const auto stream = at::cuda::getCurrentCUDAStream();
    launch_column_sums(half_of(matrix), partial.data_ptr<float>(), static_cast<int>(matrix.size(0)),
                       static_cast<int>(matrix.size(1)), matrix.stride(0), stream);
    SumJobs jobs;
    jobs.overwrite = overwrites;
    jobs.job[jobs.count++] = job_of(partial, out);
    return launch_finish_sums(jobs, stream);
  }
#endif
  sum_parts(matrix.unsqueeze(1).to(out.scalar_type()), {out}, overwrites);
}

void StepOps::sum_parts(const at::Tensor& parts, const std::vector<at::Tensor>& out,
                        bool overwrites) {
#ifdef TANDEM_WITH_CUDA
  if (parts_->products) {
    SumJobs jobs;
    jobs.overwrite = overwrites;
    for (size_t kind = 0; kind < out.size(); ++kind)
      jobs.job[jobs.count++] = job_of(parts.select(1, static_cast<int64_t>(kind)), out[kind]);
    return launch_finish_sums(jobs, at::cuda::getCurrentCUDAStream());
  }
#endif
  for (size_t kind = 0; kind < out.size(); ++kind) {
    at::Tensor to = out[kind].view({-1});
    const at::Tensor sum = parts.select(1, static_cast<int64_t>(kind)).sum(0);
    overwrites ? to.copy_(sum) : to.add_(sum);
  }
}

}  // namespace tandem
